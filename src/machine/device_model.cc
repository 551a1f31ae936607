#include "foretrace/machine.h"

namespace foretrace {

void DeviceModel::describe(Fields& fields) {
  fields.text("name", name, "Name of the device in reports");
  fields.throughput("fp64", fp64, "Peak of the vector units; 0 if not supported");
  fields.throughput("fp32", fp32, "Peak of the vector units");
  fields.throughput("tf32", tf32, "Dense peak of the tensor units");
  fields.throughput("fp16", fp16, "Dense peak of the tensor units, with fp32 accumulation");
  fields.throughput("bf16", bf16, "Dense peak of the tensor units");
  fields.throughput("int8", int8, "Dense peak of the tensor units");
  fields.bandwidth("memory_bandwidth", memory_bandwidth, "Bandwidth of the device's memory");
  fields.bytes("memory", memory, "Size of the device's memory");
  fields.bandwidth("host_link", host_link,
                   "Bandwidth of copies to and from pinned host memory, each way");
  fields.time("launch_latency", launch_latency,
              "From the end of a launch call to the start of its kernel on an idle stream",
              Nanoseconds{0});
  fields.text("source", source, "Source of the figures");
}

}  // namespace foretrace
