#pragma once

// Settings of questions about a described model: the model, the machine, and the measured steps
// that prices are fitted to. `Asked` is any struct with these fields.

#include "foretrace/fields.h"

namespace foretrace {

template <class Asked>
void describe_model(Fields& fields, Asked& asked) {
  fields.as({.value = "MODEL", .is_positional = true})
      .name_or_path("model", asked.model,
                    "A built-in model with settings (llama3-70b:sequence=4096; see `foretrace list "
                    "models`), or the path of a description");
  fields.name_or_path("machine", asked.machine,
                      "A built-in machine (see `foretrace list machines`), or the path of a file "
                      "that describes one");
}

template <class Asked>
void describe_launch(Fields& fields, Asked& asked) {
  fields.path("config", asked.config,
              "Configuration file of the job: Megatron-LM's arguments (a script, YAML, a log), "
              "torchtitan's TOML, DeepSpeed's JSON, YAML of nanotron or Accelerate. --layout and "
              "MODEL win over it");
}

template <class Asked>
void describe_calibration(Fields& fields, Asked& asked) {
  fields.path("calibrate", asked.calibrate,
              "Fit to measured steps: CSV with the columns model, gpu, gpus, tp, pp, micro_batch, "
              "global_batch and iteration_ms, or as published tables name them");
  fields.integer("calibrate_rows", asked.calibrate_rows,
                 "How many rows of that table to fit to, chosen by shape; 0: all; by default 5 %, "
                 "at least 5");
  fields.as({.value = "COLUMN=TEXT"})
      .texts("only", asked.only, "Use only rows of tables whose COLUMN has TEXT");
}

}  // namespace foretrace
