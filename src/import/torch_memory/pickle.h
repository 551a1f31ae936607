#pragma once

// Reads Python pickles as plain data. A pickle is a program that may call any Python function. This
// reader runs only the opcodes of protocols 0 to 5 that make numbers, texts, lists, tuples, sets
// and dicts, and never calls anything: it rejects a pickle that asks for a call, and names the
// function. The exceptions are collections.OrderedDict, defaultdict, set and frozenset, which it
// reads as plain containers, and, where asked for, the classes and functions of a DataFrame: an
// object of one is a list of the class or function, its arguments, and its state if it has one.
//
// A value is a number of 8 bytes, and containers refer to their elements by such numbers. So a list
// that is shared a million times, or that contains itself, takes no more memory than its pickle.
// Code that walks the values must expect both.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/names.h"

namespace foretrace {

enum class PlainKind : std::uint8_t {
  none,
  boolean,
  integer,
  big_integer,  ///< An integer that does not fit into the value itself.
  real,
  text,
  bytes,
  list,  ///< A list, a tuple or a set.
  dict,
  callable  ///< One of the few known functions and classes. The result has them only in objects.
};

struct PlainValue {
  std::uint64_t bits = 0;  ///< The kind in the low four bits; a number or an index above.

  PlainKind kind() const { return static_cast<PlainKind>(bits & 15U); }
  std::uint64_t index() const { return bits >> 4U; }
  bool is_none() const { return kind() == PlainKind::none; }
  bool is_list() const { return kind() == PlainKind::list; }
  bool is_dict() const { return kind() == PlainKind::dict; }
};

/// The values of a pickle or of a JSON text.
class PlainData {
 public:
  PlainValue root;

  /// The value of an integer or a truth value, modulo 2^64, so that addresses fit. Returns nullopt
  /// for other kinds.
  std::optional<std::int64_t> integer(PlainValue value) const;
  double real(PlainValue value) const { return reals_[value.index()]; }
  /// The value of a text; empty for other kinds. Not always valid UTF-8.
  std::string_view text(PlainValue value) const;
  /// The value of bytes; empty for other kinds.
  std::string_view bytes(PlainValue value) const;
  /// The elements of a list, or the alternating keys and values of a dict. Empty for other kinds.
  std::span<const PlainValue> items(PlainValue value) const;
  std::size_t container_count() const { return containers_.size(); }

  /// The value of a key in a dict; a value of kind `none` if it is missing. Searches only the last
  /// elements of a huge dict, so that many lookups stay cheap.
  PlainValue find(PlainValue dict, std::string_view key) const;

  PlainValue make(PlainKind kind, std::uint64_t index = 0) const {
    return {index << 4U | static_cast<std::uint64_t>(kind)};
  }
  PlainValue make_integer(std::int64_t value);
  PlainValue make_real(double value);
  /// REQUIRES: the bytes of `text` outlive this, as those given to keep() do.
  PlainValue make_text(std::string_view text, PlainKind kind = PlainKind::text);
  PlainValue make_copied_text(std::string_view text) { return make_text(copies_[copy(text)]); }
  PlainValue make_container(PlainKind kind);
  void append(PlainValue container, std::span<const PlainValue> elements);
  void append(PlainValue container, PlainValue element) { append(container, {&element, 1}); }

  /// Stores the bytes that texts refer to and returns a view of them.
  std::string_view keep(std::string bytes);

  /// Throws TraceError if the values take far more memory than those of any snapshot of `size`
  /// bytes. For example, a gigabyte of empty lists, which take one byte each, would need 40 GB.
  void check_size(std::size_t size) const;

 private:
  NameId copy(std::string_view text) { return copies_.intern(text); }

  std::unique_ptr<const std::string> bytes_;
  std::vector<std::int64_t> integers_;
  std::vector<double> reals_;
  std::vector<std::string_view> texts_;
  std::vector<std::vector<PlainValue>> containers_;
  std::size_t elements_ = 0;  ///< Count over all containers.
  Names copies_;
};

/// Which classes and functions a pickle may name beside plain containers. None is ever called.
enum class PickleCalls : std::uint8_t { none, data_frames };

/// Throws TraceError, which names the place, if `bytes` are not a complete pickle of plain data.
PlainData read_pickle(std::string bytes, PickleCalls calls = PickleCalls::none);

/// Whether a pickle of plain data may begin with these bytes.
bool begins_pickle(std::string_view head);

}  // namespace foretrace
