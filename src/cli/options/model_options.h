#pragma once

// The options of commands that predict a described model: MODEL, --machine, and the measured steps
// that prices are fitted to. `Question` is any struct with these fields.

#include "cli/options/command.h"

namespace foretrace {

template <class Question>
void add_model(CLI::App& command, Question& question) {
  command.add_option("MODEL", question.model,
                     "A built-in model with settings (llama3-70b:sequence=4096; see `foretrace "
                     "list models`), or the path of a description");
  command.add_option("--machine", question.machine,
                     "A built-in machine (see `foretrace list machines`), or the path of a file "
                     "that describes one");
}

template <class Question>
void add_calibration(CLI::App& command, Question& question) {
  command
      .add_option("--calibrate", question.calibrate,
                  "Fit to measured steps: CSV with the columns model, gpu, gpus, tp, pp, "
                  "micro_batch, global_batch and iteration_ms, or as published tables name them")
      ->type_name("FILE");
  command.add_option(
      "--calibrate-rows", question.calibrate_rows,
      "How many rows of that table to fit to, chosen by shape; 0: all; by default 5 %, at least 5");
  command.add_option("--only", question.only, "Use only rows of tables whose COLUMN has TEXT")
      ->type_name("COLUMN=TEXT");
}

}  // namespace foretrace
