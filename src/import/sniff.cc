#include "import/sniff.h"

#include <algorithm>

#include "foretrace/error.h"
#include "import/source.h"
#include "import/tar.h"
#include "import/unreadable.h"

namespace foretrace {

namespace {

constexpr std::size_t kHead = 64 * 1024;

/// macOS puts a file "._name" of attributes next to every file of an archive.
bool is_apple_double(const std::string& member) {
  const std::size_t slash = member.rfind('/');
  return member.compare(slash == std::string::npos ? 0 : slash + 1, 2, "._") == 0;
}

bool is_recognized(const Sniffed& file) {
  return std::any_of(importers().begin(), importers().end(),
                     [&](const ImporterEntry& importer) { return importer.recognizes(file); });
}

/// What the current member is instead of a trace; empty if it is one.
std::string what_else_is(const std::string& archive, TarReader& tar) {
  try {
    const auto member = decompressed(member_source(tar));
    const std::string head(member->peek(kHead));
    const std::string path = archive + ":" + tar.name();
    const Sniffed file{path, head};
    return is_recognized(file) ? std::string() : what_it_is(file);
  } catch (const TraceError& error) {
    return std::string("unreadable: ") + error.what();
  }
}

}  // namespace

std::string sniff(const std::string& path) {
  const auto bytes = open_source(path);
  return within(path, [&] {
    std::string head(bytes->peek(kHead));
    if (head.empty() && !bytes->damage().empty()) throw TraceError(bytes->damage());
    return head;
  });
}

ArchiveContents look_into_archive(const std::string& archive) {
  const auto bytes = open_source(archive);
  TarReader tar(*bytes);
  ArchiveContents contents;
  while (tar.next()) {
    if (is_apple_double(tar.name())) continue;
    const std::string other = what_else_is(archive, tar);
    if (other.empty()) {
      contents.traces.push_back(tar.name());
    } else if (contents.first_other.empty()) {
      contents.first_other = tar.name() + " is " + other;
    }
  }
  contents.damage = tar.damage();
  return contents;
}

void note_damage(const ArchiveContents& contents, const std::string& archive, Notes& notes) {
  if (contents.damage.empty()) return;
  notes.add(Severity::warning,
            "the archive is cut off or damaged; what came behind that is missing",
            archive + ": " + contents.damage);
}

std::string what_it_is(const Sniffed& file) {
  const std::string known = what_else_it_is(file);
  if (!known.empty()) return known;
  std::string bytes;
  for (const char c : file.head.substr(0, 4)) {
    const auto byte = static_cast<unsigned char>(c);
    bytes += bytes.empty() ? "" : " ";
    bytes += "0123456789abcdef"[byte >> 4U];
    bytes += "0123456789abcdef"[byte & 15U];
  }
  return "of no known format (it starts with the bytes " + bytes + ")";
}

}  // namespace foretrace
