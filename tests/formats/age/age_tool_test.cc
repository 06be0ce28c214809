// Tests that the distribution's age tool and this implementation read each other's files.
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "io/formats/age/armor.h"
#include "io/model_file.h"
#include "tests/formats/age/file_builder.h"
#include "tests/io/test_in_folder.h"
#include "tests/shared_models.h"

namespace permafrost::age {
namespace {

namespace fs = std::filesystem;

class AgeToolTest : public TestInFolder {
 protected:
  void SetUp() override {
    ASSERT_EQ(std::system("age --version >/dev/null"), 0) << "age is missing: script/install_deps installs it";
    TestInFolder::SetUp();
  }
  // Runs a shell command in the folder.
  void Run(const std::string& command) const {
    ASSERT_EQ(std::system(absl::StrCat("cd '", folder_.string(), "' && { ", command, "; } >log 2>&1").c_str()), 0)
        << command << ": " << Get(Path("log"));
  }

  // Runs age on a separate terminal and answers each request for a passphrase.
  void RunOnTerminal(const std::vector<std::string>& arguments, const std::string& passphrase) const {
    int terminal;
    const pid_t child = forkpty(&terminal, nullptr, nullptr, nullptr);
    ASSERT_GE(child, 0);
    if (child == 0) {
      std::vector<char*> pointers = {const_cast<char*>("age")};
      for (const std::string& argument : arguments) pointers.push_back(const_cast<char*>(argument.c_str()));
      pointers.push_back(nullptr);
      if (chdir(folder_.c_str()) == 0) execvp("age", pointers.data());
      _exit(127);
    }
    std::string shown;
    size_t answered = 0;
    char buffer[1000];
    for (ssize_t count; (count = read(terminal, buffer, sizeof(buffer))) > 0;) {
      shown.append(buffer, static_cast<size_t>(count));
      const size_t question = shown.find("passphrase", answered);
      if (question == std::string::npos || !absl::EndsWith(shown, ": ")) continue;
      answered = shown.size();
      const std::string line = passphrase + "\n";
      ASSERT_EQ(write(terminal, line.data(), line.size()), static_cast<ssize_t>(line.size()));
    }
    close(terminal);
    int status;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << shown;
  }
};

TEST_F(AgeToolTest, ReadsWhatAgeWrites) {
  Run("age-keygen -o key.txt && age-keygen -o other.txt && age-keygen -y other.txt >other.pub");
  const std::shared_ptr<KeySource> keys = KeysInMemory(Get(Path("key.txt")));
  for (const size_t size : {size_t{0}, size_t{1}, size_t{1000}, kChunkBytes, kChunkBytes + 1, 5 * kChunkBytes}) {
    const std::string plain = Noise(size);
    Put("plain", plain);
    for (const char* armor : {"", "-a"}) {
      Run(absl::StrCat("age ", armor, " -R other.pub -r $(age-keygen -y key.txt) -o sealed plain"));
      const absl::StatusOr<std::string> opened = Decrypt(Get(Path("sealed")), keys);
      ASSERT_TRUE(opened.ok()) << size << armor << ": " << opened.status();
      EXPECT_TRUE(*opened == plain) << size << armor;
      EXPECT_EQ(Decrypt(Get(Path("sealed"))).status().code(), absl::StatusCode::kPermissionDenied);
    }
  }
}

TEST_F(AgeToolTest, WritesWhatAgeReads) {
  Put("key.txt", absl::StrCat("# ours\n", IdentityText(OtherIdentity())->bytes(), "\n"));
  Run("age-keygen -y key.txt >public");
  EXPECT_EQ(Get(Path("public")), RecipientText(OtherIdentity().recipient) + "\n");
  const AgeRecipients two{{TestIdentity().recipient, OtherIdentity().recipient}};
  for (const size_t size : {size_t{0}, size_t{1}, size_t{1000}, kChunkBytes, kChunkBytes + 1, 200 * kChunkBytes}) {
    const std::string plain = Noise(size);
    Put("sealed", *Encrypt(two, plain));
    Run("rm -f plain; age -d -i key.txt -o plain sealed");
    EXPECT_TRUE(Get(Path("plain")) == plain) << size;
  }
}

TEST_F(AgeToolTest, WritesArmourThatAgeReads) {
  Put("key.txt", absl::StrCat(IdentityText(OtherIdentity())->bytes(), "\n"));
  // All lengths of the last line, and more than one buffer.
  std::vector<size_t> sizes(49);
  std::iota(sizes.begin(), sizes.end(), 0);
  sizes.push_back(20 * kChunkBytes + 7);
  for (const size_t size : sizes) {
    const std::string plain = Noise(size);
    StringSink text;
    const std::unique_ptr<FilterSink> armor = ArmorInto(&text);
    const std::string sealed = *Encrypt({{OtherIdentity().recipient}}, plain);
    for (size_t at = 0; at < sealed.size(); at += 1000) {
      ASSERT_TRUE(armor->Append(absl::string_view(sealed).substr(at, 1000)).ok());
    }
    ASSERT_TRUE(armor->Finish().ok());
    EXPECT_EQ(*Dearmor(text.text()), sealed);
    Put("sealed", text.text());
    Run("rm -f plain; age -d -i key.txt -o plain sealed");
    EXPECT_TRUE(Get(Path("plain")) == plain) << size;
  }
}

TEST_F(AgeToolTest, UnderstandsItsPassphrases) {
  const std::string plain = Noise(1000);
  Put("plain", plain);
  RunOnTerminal({"-p", "-o", "sealed", "plain"}, "a cold winter");
  const absl::StatusOr<std::string> opened = Decrypt(Get(Path("sealed")), KeysInMemory("", "a cold winter"));
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_TRUE(*opened == plain);

  AgeRecipients knowing;
  knowing.passphrase = std::make_shared<const LockedMemory>(*LockedMemory::CopyOf("a warm summer"));
  Put("ours", *Encrypt(knowing, plain));
  RunOnTerminal({"-d", "-o", "theirs", "ours"}, "a warm summer");
  EXPECT_TRUE(Get(Path("theirs")) == plain);
}

TEST_F(AgeToolTest, AModelOpensAndSaves) {
  const std::string digits = DataFile("tests/models/digits/digits.pb");
  Run("age-keygen -o key.txt");
  Run(absl::StrCat("age -r $(age-keygen -y key.txt) -o model.age '", digits, "'"));
  KeyPlaces places;
  places.identity_files = {Path("key.txt")};
  OpenOptions open;
  open.keys = KeysAt(RealFileSystem(), places);
  const absl::StatusOr<std::unique_ptr<Graph>> graph = OpenModel(RealFileSystem(), Path("model.age"), open);
  ASSERT_TRUE(graph.ok()) << graph.status();

  const AgeRecipients me{{ParseIdentities(Get(Path("key.txt")))->front().recipient}};
  SaveOptions save;
  save.filters.push_back([&](ByteSink* out, uint64_t) { return EncryptInto(me, out); });
  ASSERT_TRUE(SaveModel(RealFileSystem(), **graph, Path("saved.age"), save).ok());
  EXPECT_EQ(*EncodedSize(**graph, save), fs::file_size(Path("saved.age")));
  Run(absl::StrCat("age -d -i key.txt -o saved.pb saved.age && cmp saved.pb '", digits, "'"));
}

}  // namespace
}  // namespace permafrost::age
