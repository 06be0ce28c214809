// Tests of finding pictures and labels, and of all errors for labels that do not fit.
#include "tools/validation/labelled_images.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "io/formats/npy.h"
#include "tests/io/test_in_folder.h"
#include "tests/shared_models.h"
#include "tools/validation/batch_source.h"
#include "tools/validation/label_files.h"

namespace permafrost {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

class LabelledImagesTest : public TestInFolder {
 protected:
  std::string Write(const std::string& name, const std::string& content = "") {
    fs::create_directories(fs::path(Path(name)).parent_path());
    return Put(name, content);
  }
  std::string WriteNpyFile(const std::string& name, const Tensor& tensor) {
    const std::string path = Path(name);
    const auto writer = RealFileSystem().NewWriter(path).value();
    EXPECT_TRUE(WriteNpy(tensor, writer.get()).ok());
    EXPECT_TRUE(writer->Commit().ok());
    return path;
  }
  absl::StatusOr<LabelledImages> Find(const LabelPlaces& places = {}, uint64_t seed = 1) {
    return FindLabelledImages(RealFileSystem(), Path("set"), places, seed);
  }
  std::string Message(const LabelPlaces& places = {}) { return std::string(Find(places).status().message()); }
  // Returns "name:class" for each picture.
  static std::vector<std::string> Pairs(const LabelledImages& images) {
    std::vector<std::string> pairs;
    for (size_t i = 0; i < images.paths.size(); ++i) {
      pairs.push_back(absl::StrCat(fs::path(images.paths[i]).filename().string(), ":", images.labels.classes.at(i)));
    }
    return pairs;
  }
};

TEST_F(LabelledImagesTest, FoldersAreClasses) {
  for (const char* name : {"set/dog/a.png", "set/cat/b.jpg", "set/cat/c.JPEG", "set/cat/notes.txt", "set/.git/d.png"}) {
    Write(name);
  }
  const LabelledImages images = Find().value();
  EXPECT_THAT(Pairs(images), UnorderedElementsAre("a.png:1", "b.jpg:0", "c.JPEG:0"));
  EXPECT_THAT(images.class_names, ElementsAre("cat", "dog"));
}

TEST_F(LabelledImagesTest, FoldersWithNumbersAreThoseClasses) {
  for (const char* name : {"set/2/a.png", "set/10/b.png"}) Write(name);
  EXPECT_THAT(Pairs(Find().value()), UnorderedElementsAre("a.png:2", "b.png:10"));
  LabelPlaces places;
  places.offset = 1;
  EXPECT_THAT(Pairs(Find(places).value()), UnorderedElementsAre("a.png:3", "b.png:11"));
  places.offset = -3;
  EXPECT_THAT(Message(places), HasSubstr("found class -1"));
}

TEST_F(LabelledImagesTest, NamesGiveTheClassOfAFolder) {
  for (const char* name : {"set/dog/a.png", "set/cat/b.png"}) Write(name);
  LabelPlaces places;
  places.class_names = Write("names.txt", "bird\ndog\ncat\n");
  EXPECT_THAT(Pairs(Find(places).value()), UnorderedElementsAre("a.png:1", "b.png:2"));
  Write("set/catt/c.png");
  EXPECT_THAT(Message(places), HasSubstr("folder 'catt'"));
  EXPECT_THAT(Message(places), HasSubstr("did you mean 'cat'"));
}

TEST_F(LabelledImagesTest, OrderIsShuffledButTheSameForASeed) {
  for (int i = 0; i < 40; ++i) Write(absl::StrCat("set/", i % 2, "/", i, ".png"));
  const std::vector<std::string> first = Pairs(Find().value());
  EXPECT_EQ(Pairs(Find().value()), first);
  const std::vector<std::string> other = Pairs(Find({}, 2).value());
  EXPECT_NE(other, first);
  EXPECT_THAT(other, testing::UnorderedElementsAreArray(first));
  // The first half contains more than one class.
  EXPECT_TRUE(std::any_of(first.begin(), first.begin() + 20, [](const std::string& s) { return s.back() == '0'; }));
  EXPECT_TRUE(std::any_of(first.begin(), first.begin() + 20, [](const std::string& s) { return s.back() == '1'; }));
}

TEST_F(LabelledImagesTest, Lists) {
  for (const char* name : {"set/a.png", "set/b c.png", "set/d.png"}) Write(name);
  LabelPlaces places;
  for (const auto& [name, text] :
       std::vector<std::pair<std::string, std::string>>{{"l.csv", "filename,label\na.png,4\n\"b c.png\",5\n"},
                                                        {"l.txt", "# comment\n\na.png 4\nb c.png 5\n"},
                                                        {"tabs.txt", "a.png\t4\r\nb c.png\t5\r\n"}}) {
    places.list = Write(name, text);
    const absl::StatusOr<LabelledImages> images = Find(places);
    ASSERT_TRUE(images.ok()) << name << images.status();
    EXPECT_THAT(Pairs(*images), UnorderedElementsAre("a.png:4", "b c.png:5")) << name;
    EXPECT_EQ(images->num_left_out, 1);
  }
  places.list = Write("bare.txt", "7\n8\n9\n");
  EXPECT_THAT(Pairs(Find(places).value()), UnorderedElementsAre("a.png:7", "b c.png:8", "d.png:9"));
  places.list = WriteNpyFile("l.npy", Tensor::FromVector<int64_t>({3}, {1, 2, 3}));
  EXPECT_THAT(Pairs(Find(places).value()), UnorderedElementsAre("a.png:1", "b c.png:2", "d.png:3"));
}

TEST_F(LabelledImagesTest, NumbersAreShuffledWithTheirPictures) {
  std::string list;
  for (int i = 0; i < 9; ++i) {
    Write(absl::StrCat("set/", i, ".png"));
    absl::StrAppend(&list, i, ".png,", i, ".5,", -i, "\n");
  }
  LabelPlaces places;
  places.list = Write("l.csv", list);
  const LabelledImages images = Find(places).value();
  EXPECT_EQ(images.labels.numbers_per_row, 2);
  for (size_t i = 0; i < 9; ++i) {
    const double number = std::stod(fs::path(images.paths[i]).stem().string());
    EXPECT_EQ(images.labels.numbers[2 * i], number + 0.5);
    EXPECT_EQ(images.labels.numbers[2 * i + 1], -number);
  }
}

TEST_F(LabelledImagesTest, WhatDoesNotFit) {
  for (const char* name : {"set/a.png", "set/b.png"}) Write(name);
  LabelPlaces places;
  const auto message = [&](const std::string& name, const std::string& text) {
    places.list = Write(name, text);
    return Message(places);
  };
  EXPECT_THAT(message("l.csv", "a.png,1\nbb.png,1\n"), HasSubstr("line 2: no file"));
  EXPECT_THAT(message("l.csv", "a.png,1\nbb.png,1\n"), HasSubstr("did you mean 'b.png'"));
  EXPECT_THAT(message("l.csv", "a.png,1\nb.png,one\n"), HasSubstr("line 2: found 'one', expected a class"));
  EXPECT_THAT(message("l.csv", "a.png,one\n"), HasSubstr("--class_names"));
  EXPECT_THAT(message("l.csv", "a.png,1\nb.png\n"), HasSubstr("line 2: found 1 fields, expected 2"));
  EXPECT_THAT(message("l.csv", "a.png,-1\n"), HasSubstr("found class -1"));
  EXPECT_THAT(message("l.csv", "a.png,nan\n"), HasSubstr("found 'nan'"));
  EXPECT_THAT(message("l.csv", "a.png,99999999999\n"), HasSubstr("expected 0 to 1000000"));
  EXPECT_THAT(message("l.csv", ",1\n"), HasSubstr("line 1: the name of the file is empty"));
  EXPECT_THAT(message("l.csv", "a.png,1.5\nb.png,cat\n"), HasSubstr("line 2: found 'cat', expected a number"));
  EXPECT_THAT(message("l.txt", "1\n"),
              EndsWith(absl::StrCat("holds 1 labels, folder '", Path("set"), "' holds 2 pictures")));
  EXPECT_THAT(message("l.txt", "# nothing\n"), EndsWith("holds no labels"));
  EXPECT_THAT(message("l.npy", "text"), HasSubstr("not an NPY file"));
  places.list = WriteNpyFile("l.npy", Tensor::FromVector<int64_t>({3}, {1, 2, 3}));
  EXPECT_THAT(Message(places), HasSubstr("holds 3 labels"));
  places.list = WriteNpyFile("l.npy", Tensor::FromVector<int64_t>({1, 2}, {1, 2}));
  EXPECT_THAT(Message(places), HasSubstr("expected one class for each row"));
  places.list = WriteNpyFile("l.npy", Tensor::FromVector<int64_t>({2}, {1, -2}));
  EXPECT_THAT(Message(places), HasSubstr("row 1: found class -2"));
  places = {};
  places.class_names = Write("names.txt", "a\nb\na\n");
  EXPECT_THAT(Message(places), HasSubstr("line 3: found 'a' a second time"));
}

TEST_F(LabelledImagesTest, FoldersThatAreNoSets) {
  EXPECT_THAT(Message(), HasSubstr("cannot list"));
  fs::create_directories(Path("set/inner"));
  EXPECT_THAT(Message(), HasSubstr("holds no pictures"));
  Write("set/a.png");
  EXPECT_THAT(Message(), HasSubstr("1 pictures beside folders (inner)"));
}

TEST_F(LabelledImagesTest, BatchesOfAFixedSizeAreFilledUp) {
  const std::string folder = fs::path(DataFile("tests/models/digit_images/3/003.png")).parent_path().string();
  const std::vector<std::string> paths = {folder + "/003.png", folder + "/007.png", folder + "/003.png"};
  const PictureConverter converter =
      PictureConverter::Create({}, {DType::kFloat, 8, 8, 1, PictureLayout::kChannelsLast}).value();
  for (const bool is_fixed : {true, false}) {
    const auto source = ImageBatches(RealFileSystem(), paths, converter, {}, 2, is_fixed);
    ASSERT_EQ(source->num_batches(), 2);
    EXPECT_EQ(source->num_rows(), 3);
    const Batch last = source->Read(1, nullptr).value();
    EXPECT_EQ(last.first_row, 2);
    EXPECT_EQ(last.rows, 1);
    EXPECT_EQ(last.feeds[0].shape(), Shape({is_fixed ? 2 : 1, 8, 8, 1}));
    const Batch first = source->Read(0, nullptr).value();
    EXPECT_EQ(first.feeds[0].bytes().substr(0, 256), last.feeds[0].bytes().substr(0, 256));
  }
}

}  // namespace
}  // namespace permafrost
