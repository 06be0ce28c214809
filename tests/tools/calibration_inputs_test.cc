// Tests of calibration inputs: accepted paths, limits, and errors.
#include "tools/validation/calibration_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "io/formats/npy.h"
#include "tests/tools/graph_from_text.h"
#include "tools/images/jpeg_codec.h"

namespace permafrost {
namespace {

using testing::HasSubstr;

class CalibrationInputsTest : public testing::Test {
 protected:
  CalibrationInputsTest()
      : folder_(absl::StrCat(testing::TempDir(), "/calibration_",
                             testing::UnitTest::GetInstance()->current_test_info()->name(), "/")) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    graph_ = GraphFromText("a = Placeholder()\nb = Placeholder()\nsum = Add(a, b)");
    Shape("a", {kUnknownDim, 4, 6, 3});
    Shape("b", {kUnknownDim, 2});
  }

  void Shape(const std::string& input, permafrost::Shape shape) {
    graph_->Find(input)->SetAttr("shape", AttrValue::OfShape(std::move(shape)));
  }

  // Writes a picture in which all pixels have `value`.
  void WritePicture(const std::string& name, uint8_t value) {
    std::filesystem::create_directories(std::filesystem::path(folder_ + name).parent_path());
    Image image = MakeGrid<uint8_t>(8, 8, 3);
    for (uint8_t& pixel : image.pixels) pixel = value;
    std::ofstream(folder_ + name, std::ios::binary) << EncodeJpeg(image, 95).value();
  }

  // Writes rows; row i holds the number first + i.
  void WriteRows(const std::string& name, int64_t rows, float first) {
    std::vector<float> values;
    for (int64_t i = 0; i < rows; ++i) values.insert(values.end(), 2, first + static_cast<float>(i));
    const std::unique_ptr<FileWriter> writer = RealFileSystem().NewWriter(folder_ + name).value();
    ASSERT_TRUE(WriteNpy(Tensor::FromVector<float>({rows, 2}, values), writer.get()).ok());
    ASSERT_TRUE(writer->Commit().ok());
  }

  absl::StatusOr<std::vector<InputSet>> Read(const std::vector<std::string>& lists,
                                             const std::vector<std::string>& inputs) {
    EXPECT_TRUE(graph_->DeclareInterface(inputs, {}).ok());
    return ReadCalibrationInputs(RealFileSystem(), lists, {}, {}, *graph_);
  }
  std::string Message(const std::vector<std::string>& lists, const std::vector<std::string>& inputs) {
    return std::string(Read(lists, inputs).status().message());
  }

  std::string folder_;
  std::unique_ptr<Graph> graph_;
};

TEST_F(CalibrationInputsTest, NothingNamedIsNothingRead) { EXPECT_TRUE(Read({}, {"a"}).value().empty()); }

TEST_F(CalibrationInputsTest, AFolderOfPicturesIsOneSetEach) {
  WritePicture("cat/1.jpg", 255);
  WritePicture("dog/2.jpg", 255);
  WritePicture("dog/3.jpeg", 255);
  const std::vector<InputSet> sets = Read({folder_}, {"a"}).value();
  ASSERT_EQ(sets.size(), 3u);
  EXPECT_EQ(sets[0][0].shape(), permafrost::Shape({1, 4, 6, 3}));
  EXPECT_NEAR(sets[0][0].elements<float>()[0], 1, 0.05);  // White is fed as in validate_model.
}

TEST_F(CalibrationInputsTest, RowsAreSetsOfTheirOwnWhereTheModelLeavesItOpen) {
  WriteRows("1.npy", 2, 10);
  WriteRows("2.npy", 1, 20);
  std::vector<float> first;
  const std::vector<InputSet> sets = Read({folder_}, {"b"}).value();
  for (const InputSet& set : sets) first.push_back(set[0].elements<float>()[0]);
  EXPECT_THAT(first, testing::ElementsAre(10, 11, 20));
}

TEST_F(CalibrationInputsTest, ABatchThatTheModelFixesIsFilled) {
  Shape("b", {3, 2});
  WriteRows("1.npy", 7, 0);
  const std::vector<InputSet> sets = Read({folder_ + "1.npy"}, {"b"}).value();
  ASSERT_EQ(sets.size(), 2u);
  EXPECT_EQ(sets[1][0].elements<float>()[0], 3);
  WriteRows("1.npy", 2, 0);
  EXPECT_EQ(Message({folder_ + "1.npy"}, {"b"}), "--calibration_inputs: found 2 rows, the model takes 3 at a time");
}

TEST_F(CalibrationInputsTest, ManyAreThinnedOutEvenly) {
  WriteRows("1.npy", 4 * kMostCalibrationSets, 0);
  const std::vector<InputSet> sets = Read({folder_}, {"b"}).value();
  ASSERT_EQ(sets.size(), kMostCalibrationSets);
  EXPECT_EQ(sets.back()[0].elements<float>()[0], 4 * (kMostCalibrationSets - 1));
}

TEST_F(CalibrationInputsTest, SeveralInputsHaveAFolderEach) {
  Shape("a", {kUnknownDim, 2});
  std::filesystem::create_directories(folder_ + "as");
  std::filesystem::create_directories(folder_ + "bs");
  WriteRows("as/1.npy", 2, 1);
  WriteRows("bs/1.npy", 2, 5);
  const std::vector<InputSet> sets = Read({"a=" + folder_ + "as,b=" + folder_ + "bs"}, {"a", "b"}).value();
  ASSERT_EQ(sets.size(), 2u);
  EXPECT_EQ(sets[1][0].elements<float>()[0], 2);
  EXPECT_EQ(sets[1][1].elements<float>()[0], 6);
}

TEST_F(CalibrationInputsTest, RefusesWhatItCannotTell) {
  EXPECT_THAT(Message({folder_}, {"a"}), HasSubstr("holds no pictures"));
  EXPECT_THAT(Message({folder_ + "nothing"}, {"a"}), HasSubstr("No such file"));
  WritePicture("1.jpg", 0);
  EXPECT_THAT(Message({folder_}, {"a", "b"}), HasSubstr("needs a model with one input, found 2: a, b"));
  WriteRows("1.npy", 1, 0);
  EXPECT_THAT(Message({folder_}, {"a"}), HasSubstr("holds 1 NPY files and 1 pictures, expected either"));
  EXPECT_THAT(Message({folder_ + "1.npy"}, {"a"}), HasSubstr("has shape"));
  std::ofstream(folder_ + "1.jpg") << "no picture";
  std::filesystem::remove(folder_ + "1.npy");
  EXPECT_THAT(Message({folder_}, {"a"}), HasSubstr("1.jpg"));
}

}  // namespace
}  // namespace permafrost
