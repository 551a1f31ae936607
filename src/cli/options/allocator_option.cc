#include "cli/options/allocator_option.h"

#include <fmt/core.h>

#include "base/fields/assignments.h"
#include "foretrace/error.h"

namespace foretrace {

void AllocatorOption::add_to(CLI::App& command) {
  command
      .add_option(
          "--allocator", settings,
          "Settings of the caching allocator, such as "
          "max_split_size=512MiB,expandable_segments=true; named as in \"memory\" of scenarios")
      ->type_name("SETTINGS");
  command
      .add_option("--conf", conf,
                  "The same in the syntax of PYTORCH_CUDA_ALLOC_CONF: "
                  "max_split_size_mb:512,expandable_segments:True")
      ->type_name("TEXT");
  command
      .add_option("--memory-limit", limit,
                  "Available device memory, such as 16GB; unlimited by default")
      ->type_name("BYTES");
}

void AllocatorOption::set(AllocatorSettings& allocator) const {
  within("--conf", [&] { read_alloc_conf(conf, allocator); });
  within("--allocator", [&] {
    if (!settings.empty()) read_assigned(settings, allocator);
    const CachingAllocator checked(allocator);
  });
  within("--memory-limit", [&] {
    if (limit.empty()) return;
    allocator.limit = parse_bytes(limit);
    if (allocator.limit <= Bytes{})
      throw Error(fmt::format("must be more than 0B, got \"{}\"", limit));
  });
}

}  // namespace foretrace
