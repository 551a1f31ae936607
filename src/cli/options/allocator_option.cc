#include "cli/options/allocator_option.h"

#include "base/assignments.h"
#include "foretrace/error.h"

namespace foretrace {

void AllocatorOption::add_to(CLI::App& command) {
  command
      .add_option("--allocator", settings,
                  "How the caching allocator works, as max_split_size=512MiB,"
                  "expandable_segments=true; the names are those of \"memory\" in scenarios")
      ->type_name("SETTINGS");
  command
      .add_option("--conf", conf,
                  "The same as PyTorch reads it from PYTORCH_CUDA_ALLOC_CONF: "
                  "max_split_size_mb:512,expandable_segments:True")
      ->type_name("TEXT");
  command
      .add_option("--memory-limit", limit,
                  "Device memory that there is, 16GB; by default any amount")
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
    if (allocator.limit <= Bytes{}) throw Error("must be more than 0B, got \"" + limit + "\"");
  });
}

}  // namespace foretrace
