#include "import/scan/protobuf.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "foretrace/error.h"
#include "import/protobuf_bytes.h"

namespace foretrace {
namespace {

class Text : public Source {
 public:
  Text(std::string bytes, std::size_t most) : bytes_(std::move(bytes)), most_(most) {}
  std::size_t read(char* to, std::size_t room) override {
    const std::size_t part = std::min({room, most_, bytes_.size() - at_});
    std::memcpy(to, bytes_.data() + at_, part);
    at_ += part;
    return part;
  }

 private:
  std::string bytes_;
  std::size_t most_;
  std::size_t at_ = 0;
};

/// "number:wire=value" for each field, and "damaged" where reading stops.
std::string fields_of(std::string_view message) {
  ProtoReader fields(message);
  std::string text;
  while (fields.next()) {
    text += std::to_string(fields.number()) + ":" +
            std::to_string(static_cast<int>(fields.wire())) + "=" +
            (fields.wire() == WireType::bytes ? std::string(fields.bytes())
                                              : std::to_string(fields.unsigned_value())) +
            " ";
  }
  return text + (fields.damaged() ? "damaged" : "end");
}

TEST(Protobuf, CutsAMessageIntoItsFields) {
  EXPECT_EQ(fields_of(""), "end");
  EXPECT_EQ(fields_of(proto_number(1, 300) + proto_text(2, "abc") + proto_number(536870911, 0)),
            "1:0=300 2:2=abc 536870911:0=0 end");
  EXPECT_EQ(fields_of(std::string("\x0d\x01\0\0\0\x09\x02\0\0\0\0\0\0\0", 14)), "1:5=1 1:1=2 end");
}

TEST(Protobuf, StopsWhereAMessageIsDamaged) {
  EXPECT_EQ(fields_of("\x08"), "damaged");  // No value.
  EXPECT_EQ(fields_of("\x12\x05"
                      "abcd"),
            "damaged");                                                // Shorter than it says.
  EXPECT_EQ(fields_of(proto_number(1, 5) + "\x0b"), "1:0=5 damaged");  // Groups are not supported.
  EXPECT_EQ(fields_of(std::string("\0\0", 2)), "damaged");             // There is no field 0.
  EXPECT_EQ(fields_of(std::string(11, '\xff')), "damaged");  // A varint has ten bytes at most.
}

TEST(Protobuf, ReadsSignedAndBrokenNumbers) {
  const std::string message =
      proto_number(1, ~std::uint64_t{0}) + proto_number(2, 5) + std::string("\x1d\0\0\xc0\x3f", 5);
  ProtoReader fields(message);
  ASSERT_TRUE(fields.next());
  EXPECT_EQ(fields.signed_value(), -1);
  ASSERT_TRUE(fields.next());
  EXPECT_EQ(fields.zigzag_value(), -3);
  ASSERT_TRUE(fields.next());
  EXPECT_EQ(fields.float_value(), 1.5F);
  EXPECT_EQ(fields.double_value(), 0);
}

TEST(Protobuf, ReadsListsPackedAndNot) {
  for (const std::string& message : {proto_number(4, 1) + proto_number(4, 500),
                                     proto_text(4, proto_varint(1) + proto_varint(500))}) {
    std::vector<std::uint64_t> values;
    ProtoReader fields(message);
    while (fields.next()) fields.each_varint([&](std::uint64_t value) { values.push_back(value); });
    EXPECT_EQ(values, (std::vector<std::uint64_t>{1, 500}));
  }
}

TEST(Protobuf, StreamsDelimitedMessagesInPieces) {
  const std::string bytes =
      proto_delimited("abc") + proto_delimited("") + proto_delimited(std::string(3'000'000, 'x'));
  for (const std::size_t most : {std::size_t{1000}, std::size_t{1} << 30}) {
    Text source(bytes, most);
    ProtoStream stream(source);
    EXPECT_EQ(stream.delimited(), "abc");
    EXPECT_EQ(stream.delimited(), "");
    EXPECT_EQ(stream.delimited().value_or("").size(), 3'000'000);
    EXPECT_EQ(stream.delimited(), std::nullopt);
    EXPECT_FALSE(stream.is_cut());
    EXPECT_EQ(stream.offset(), static_cast<std::int64_t>(bytes.size()));
  }
}

TEST(Protobuf, DoesNotBelieveALengthBeforeTheBytesAreThere) {
  Text cut(proto_varint(200'000'000) + "abc", 1000);
  ProtoStream stream(cut);
  EXPECT_EQ(stream.delimited(), std::nullopt);
  EXPECT_TRUE(stream.is_cut());
  Text absurd(proto_varint(~std::uint64_t{0}), 1000);
  ProtoStream other(absurd);
  EXPECT_THROW(other.delimited(), TraceError);
}

}  // namespace
}  // namespace foretrace
