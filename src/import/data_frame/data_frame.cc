// A pickled DataFrame, with what the pickle would call in square brackets:
//
//     [DataFrame] {"_mgr": [BlockManager] (axes, values, items, {"0.14.1": {"axes": axes,
//                            "blocks": [{"values": array, "mgr_locs": ...}]}})}
//     axes        columns [_new_Index (Index, {"data": array of texts})],
//                 index [_new_DatetimeIndex (DatetimeIndex, {"data": [DatetimeArray] {"_data":
//                 array}})]
//     array       [_reconstruct] (version, shape, dtype, is in Fortran's order, bytes or texts)
//     dtype       [dtype ("M8", ...)] (version, "<", ..., ({}, (b"ns", 1, 1, 1)))

#include "import/data_frame/data_frame.h"

#include <fmt/core.h>

#include "foretrace/error.h"
#include "import/files/archive.h"
#include "import/torch_memory/pickle.h"
#include "import/torch_memory/pickle_numbers.h"

namespace foretrace {
namespace {

constexpr std::size_t kMaxFrameBytes = std::size_t{1} << 30;
constexpr std::size_t kArchiveHead = 512, kPickleHead = 16;

/// Parts of an object: its class or function, arguments, and state.
constexpr std::size_t kArguments = 1, kState = 2;
/// Places in the state of an array.
constexpr std::size_t kShape = 1, kType = 2, kFortran = 3, kContent = 4;

class DataFrameReader {
 public:
  explicit DataFrameReader(const PlainData& data) : data_(data) {}

  TimedTable read() {
    const PlainValue manager = data_.find(part(data_.root, kState), "_mgr");
    const PlainValue inner = data_.find(part(part(manager, kState), 3), "0.14.1");
    const PlainValue blocks = data_.find(inner, "blocks"), axes = data_.find(inner, "axes");
    if (data_.items(axes).size() != 2 || data_.items(blocks).size() != 1)
      throw TraceError("must be a DataFrame with values of one kind and times as its index");
    TimedTable table;
    for (const PlainValue name : data_.items(content(data_of(part(axes, 0)), "O8")))
      table.columns.emplace_back(data_.text(name));
    read_times(data_.find(part(data_of(part(axes, 1)), kState), "_data"), table.times);
    const PlainValue values = data_.find(part(blocks, 0), "values");
    table.values = data_.bytes(content(values, "i1"));
    table.is_by_row = data_.integer(part(part(values, kState), kFortran)).value_or(0) != 0;
    if (table.columns.empty() || table.values.size() % table.columns.size() != 0 ||
        table.values.size() / table.columns.size() != table.times.size())
      throw TraceError(fmt::format("must have a value for each of {} columns and {} rows, has {}",
                                   table.columns.size(), table.times.size(), table.values.size()));
    return table;
  }

 private:
  /// An element of a list or an object; none if it is missing.
  PlainValue part(PlainValue whole, std::size_t place) const {
    const auto all = data_.items(whole);
    return whole.is_list() && place < all.size() ? all[place] : PlainValue{};
  }
  /// The argument "data" of an axis.
  PlainValue data_of(PlainValue axis) const {
    return data_.find(part(part(axis, kArguments), 1), "data");
  }

  /// The content of an array. Throws TraceError if its values are of another type.
  PlainValue content(PlainValue array, std::string_view type) const {
    const PlainValue state = part(array, kState);
    const std::string_view found = data_.text(part(part(part(state, kType), kArguments), 0));
    if (found != type)
      throw TraceError(fmt::format("must have values of type {}, got {}", type,
                                   found.empty() ? "no array" : found));
    return part(state, kContent);
  }

  void read_times(PlainValue array, std::vector<Nanoseconds>& times) const {
    const std::string_view bytes = data_.bytes(content(array, "M8"));
    const auto type = data_.items(part(part(part(array, kState), kType), kState));
    const PlainValue unit = type.empty() ? PlainValue{} : part(part(type.back(), 1), 0);
    if (data_.bytes(unit) != "ns") throw TraceError("must have times in nanoseconds");
    constexpr std::size_t kTime = 8;
    for (std::size_t at = 0; at + kTime <= bytes.size(); at += kTime) {
      times.emplace_back(static_cast<std::int64_t>(little_endian(bytes.substr(at, kTime))));
      if (times.size() > 1 && times.back() < times[times.size() - 2])
        throw TraceError(fmt::format("must have times in order, row {} has not", times.size()));
    }
  }

  const PlainData& data_;
};

std::string read_at_most(Source& bytes) {
  std::string all = read_whole(bytes, kMaxFrameBytes);
  if (all.size() > kMaxFrameBytes) throw TraceError("must unpack to at most 1 GiB");
  return all;
}

}  // namespace

bool may_be_timed_table(const std::string& path) {
  return within(path, [&] {
    const auto bytes = decompressed(open_file(path));
    return begins_pickle(bytes->peek(kPickleHead)) || is_archive(path, bytes->peek(kArchiveHead));
  });
}

TimedTable read_timed_table(const std::string& path) {
  return within(path, [&] {
    const auto bytes = decompressed(open_file(path));
    std::string pickle;
    if (is_archive(path, bytes->peek(kArchiveHead))) {
      ArchiveReader archive(*bytes);
      if (!archive.next()) throw TraceError("must contain a file");
      pickle = read_at_most(*member_source(archive));
      if (archive.next()) throw TraceError("must contain one file, contains " + archive.name());
    } else {
      pickle = read_at_most(*bytes);
    }
    const PlainData data = read_pickle(std::move(pickle), PickleCalls::data_frames);
    return DataFrameReader(data).read();
  });
}

}  // namespace foretrace
