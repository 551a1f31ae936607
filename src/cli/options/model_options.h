#pragma once

// MODEL and --machine, and the measured steps that prices are fitted to: for questions with these
// fields.

#include "cli/options/command.h"

namespace foretrace {

template <class Question>
void add_model(CLI::App& command, Question& question) {
  command.add_option("MODEL", question.model,
                     "A built-in model with settings (llama3-70b:sequence=4096), or the path of a "
                     "description; `foretrace list models`");
  command.add_option("--machine", question.machine,
                     "A built-in machine, or the path of one; `foretrace list machines`");
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
      "How many of its rows to fit to, chosen by shape; 0: all; by default 5 %, at least 5");
  command.add_option("--only", question.only, "Rows of tables whose column holds a text")
      ->type_name("COLUMN=TEXT");
}

}  // namespace foretrace
