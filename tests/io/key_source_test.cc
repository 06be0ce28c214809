// Tests that keys are read once from each location, and that errors name the location.
#include "io/key_source.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/io/faulty_file_system.h"
#include "tests/io/test_in_folder.h"

namespace permafrost {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class KeySourceTest : public TestInFolder {
 protected:
  // Returns the reading end of a pipe that holds `text`.
  static int PipeWith(const std::string& text) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    EXPECT_EQ(write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
    close(ends[1]);
    return ends[0];
  }
  static std::string Message(const absl::Status& status) { return std::string(status.message()); }
};

TEST_F(KeySourceTest, EachPlaceIsReadOnce) {
  setenv("PERMAFROST_TEST_KEY", "of the environment", 1);
  setenv("PERMAFROST_TEST_WORDS", "words\n", 1);
  KeyPlaces places;
  places.identity_files = {Put("a", "first\n"), Put("b", "second\n")};
  places.identity_descriptors = {PipeWith("third\n")};
  places.identity_variables = {"PERMAFROST_TEST_KEY"};
  places.passphrase_descriptors = {PipeWith("a cold\nwinter\n")};
  places.passphrase_variables = {"PERMAFROST_TEST_WORDS"};
  const std::shared_ptr<KeySource> keys = KeysAt(RealFileSystem(), places);
  for (int round = 0; round < 2; ++round) {
    const std::vector<GivenSecret> identities = *keys->Identities();
    ASSERT_EQ(identities.size(), 4u);
    EXPECT_EQ(identities[0].text->bytes(), "first\n");
    EXPECT_EQ(identities[0].origin, "'" + Path("a") + "'");
    EXPECT_EQ(identities[1].text->bytes(), "second\n");
    EXPECT_EQ(identities[2].text->bytes(), "third\n");
    EXPECT_THAT(identities[2].origin, HasSubstr("file descriptor "));
    EXPECT_EQ(identities[3].text->bytes(), "of the environment");
    EXPECT_EQ(identities[3].origin, "$PERMAFROST_TEST_KEY");
    const std::vector<GivenSecret> passphrases = *keys->Passphrases();
    ASSERT_EQ(passphrases.size(), 2u);
    EXPECT_EQ(passphrases[0].text->bytes(), "a cold\nwinter");
    EXPECT_EQ(passphrases[1].text->bytes(), "words\n");
    fs::remove(Path("a"));
  }
  EXPECT_TRUE(KeysAt(RealFileSystem(), {})->Identities()->empty());
  EXPECT_TRUE(KeysAt(RealFileSystem(), {})->Passphrases()->empty());
}

TEST_F(KeySourceTest, BadPlacesAreNamed) {
  EXPECT_EQ(Message(SecretOfFile(RealFileSystem(), Path("none")).status()),
            "cannot open '" + Path("none") + "': No such file or directory");
  EXPECT_EQ(Message(SecretOfFile(RealFileSystem(), Put("empty", "")).status()),
            "'" + Path("empty") + "' is empty, expected a key or passphrase");
  EXPECT_EQ(Message(SecretOfFile(RealFileSystem(), Put("large", std::string(65537, 'x'))).status()),
            "'" + Path("large") + "' holds more than 65536 bytes, expected keys");
  EXPECT_TRUE(SecretOfDescriptor(PipeWith(std::string(60000, 'x'))).ok());
  EXPECT_THAT(Message(SecretOfDescriptor(987).status()), HasSubstr("cannot read file descriptor 987: Bad file"));
  EXPECT_EQ(Message(SecretOfVariable("PERMAFROST_TEST_NONE").status()),
            "the environment variable 'PERMAFROST_TEST_NONE' is not set");
  KeyPlaces places;
  places.passphrase_descriptors = {PipeWith("\n")};
  EXPECT_THAT(Message(KeysAt(RealFileSystem(), places)->Passphrases().status()), HasSubstr("is empty"));
}

TEST_F(KeySourceTest, APrivateFileIsNewAndPrivate) {
  ASSERT_TRUE(RealFileSystem().WritePrivateFile(Path("key"), "secret").ok());
  struct stat about;
  ASSERT_EQ(stat(Path("key").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
  EXPECT_EQ(*RealFileSystem().ReadFile(Path("key")), "secret");
  const absl::Status again = RealFileSystem().WritePrivateFile(Path("key"), "other");
  EXPECT_EQ(again.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(Message(again), "cannot write '" + Path("key") + "': File exists");
  fs::create_symlink(Path("nowhere"), Path("link"));
  EXPECT_EQ(RealFileSystem().WritePrivateFile(Path("link"), "x").code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(RealFileSystem().WritePrivateFile(Path("none/key"), "x").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(RealFileSystem().WritePrivateFile("", "x").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(*RealFileSystem().ReadFile(Path("key")), "secret");
}

TEST_F(KeySourceTest, APrivateFileIsWrittenWholeOrNotAtAll) {
  FaultyFileSystem full;
  full.calls().LimitDisk(3);
  EXPECT_EQ(Message(full.WritePrivateFile(Path("key"), "secret")),
            "cannot write '" + Path("key") + "': No space left on device");
  EXPECT_FALSE(fs::exists(Path("key")));
  FaultyFileSystem broken;
  broken.calls().Fail(Fault::kSync, 0, EIO);
  EXPECT_EQ(broken.WritePrivateFile(Path("key"), "secret").code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(fs::exists(Path("key")));
}

}  // namespace
}  // namespace permafrost
