#include <fmt/core.h>

#include "foretrace/error.h"
#include "transform/input/loader.h"

namespace foretrace {

void LoaderSettings::describe(Fields& fields) {
  describe_workers(fields);
  describe_data(fields);
  fields.flag("coordinated", coordinated,
              "Each job reads and prepares its part of every epoch for all jobs");
}

void LoaderSettings::describe_workers(Fields& fields) {
  fields.object("where", where, "The loading work on the training thread");
  fields.integer("workers", workers, "Processes that load; 0: the training thread loads", 0,
                 10'000);
  fields.integer("prefetch_factor", prefetch_factor, "Batches that each worker may be ahead", 1,
                 10'000);
  fields.optional_integer("cores", cores,
                          "Cores of the server, shared by workers and the threads of the training "
                          "process; by default one for each that is busy",
                          1);
  fields.optional_time("batch_time", batch_time,
                       "Work per batch; by default what the training thread spent on it",
                       Nanoseconds(0));
  fields.number("work_factor", work_factor,
                "Factor on the work in a worker, which has only one thread", 0, 1e6);
  fields.time("hand_over", hand_over,
              "Time that the training thread still spends on each batch, to take it from the queue "
              "and unpack it (recalled: about 1ms)",
              Nanoseconds(0));
  fields.bandwidth(
      "first_touch", first_touch,
      "Bandwidth of the first read of a batch from shared memory (fitted to the time that "
      "4 workers add in public recordings of ResNet-50: 1.7 to 2.6GB/s)");
  fields.number(
      "host_factor", host_factor,
      "Factor on other host work beside busy workers (fitted to the same recordings: 1.04 to 1.22)",
      1, 1000);
  fields.flag("pin_memory", pin_memory, "A separate thread moves batches into pinned memory");
  fields.bandwidth(
      "pinned_bandwidth", pinned_bandwidth,
      "With pin_memory: bandwidth of input copies that were slower (recalled: PCIe 3.0 x16)");
}

void LoaderSettings::describe_data(Fields& fields) {
  fields.integer("samples", samples, "Samples in a batch; 0: unknown", 0, 1'000'000'000);
  fields.texts(
      "prep_rates", prep_rates,
      "Measured samples per second for numbers of cores, such as 3:2100 and 12:4200; interpolated, "
      "and never above the last. Replaces the recorded work; a worker keeps one core busy");
  fields.bytes("dataset_bytes", dataset_bytes,
               "Size of the data set as stored, on all servers together; 0: unknown");
  fields.integer("dataset_samples", dataset_samples, "Samples in the whole data set; 0: unknown", 0,
                 1'000'000'000'000);
  fields.bandwidth("storage", storage,
                   "Bandwidth of the server's storage for random reads of samples, such as 530MB/s "
                   "of a SATA SSD; 0: reading is not modelled");
  fields.bandwidth("cache_bandwidth", cache_bandwidth,
                   "Bandwidth of reads that hit the cache; 0: they take no time");
  fields.choice(
      "cache", set.policy, cache_policies(),
      "What the cache keeps: minio never evicts, page_cache evicts roughly at random as Linux "
      "does, lru evicts the oldest, partitioned is minio that also asks the other servers");
  fields.number("cached", set.cached,
                "Share of the data set that fits into the cache of one server", 0, 1);
  fields.integer("servers", set.servers, "Servers that train the job, each on its part of an epoch",
                 1, 1'000'000);
  fields.bandwidth("network", network,
                   "Bandwidth of the server's network, for reads from the caches of the others; 0: "
                   "they take no time");
  fields.integer("jobs", set.jobs,
                 "Jobs like this one on the server that read the same data, as in a search of "
                 "hyper-parameters",
                 1, 10'000);
}

void LoaderSettings::check() const {
  const auto require = [](bool is_given, const char* name, const char* why) {
    if (!is_given) throw Error(fmt::format("{}: must be given with {}", name, why));
  };
  if (storage.bytes_per_second > 0) {
    require(samples > 0, "samples", "storage");
    require(dataset_bytes.count > 0, "dataset_bytes", "storage");
  }
  if (dataset_bytes.count > 0) require(dataset_samples > 0, "dataset_samples", "dataset_bytes");
  if (!prep_rates.empty()) {
    require(samples > 0, "samples", "prep_rates");
    if (batch_time) throw Error("batch_time: must not be given with prep_rates");
    require(workers > 0, "workers", "prep_rates");
  }
  within("prep_rates", [&] { PrepRates{prep_rates}; });
  item_shares(set);
}

std::optional<double> LoaderSettings::cores_of_job() const {
  if (!cores) return std::nullopt;
  return static_cast<double>(*cores) / static_cast<double>(set.jobs);
}

std::optional<Nanoseconds> prep_time(const LoaderSettings& settings) {
  if (settings.prep_rates.empty()) return std::nullopt;
  const PrepRates rates(settings.prep_rates);
  const auto workers = static_cast<double>(settings.workers);
  const double busy = std::min(workers, settings.cores_of_job().value_or(workers));
  const double each = rates.at(busy) / workers;
  return scaled(1s, static_cast<double>(settings.samples) / each);
}

}  // namespace foretrace
