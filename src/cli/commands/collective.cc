#include "foretrace/ask/collective.h"

#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/options/options.h"
#include "foretrace/error.h"
#include "foretrace/report.h"
#include "network/packet/settings.h"

namespace foretrace {
namespace {

struct CollectiveCommand {
  CollectiveQuestion question;
  std::string latency, bandwidth, sizes;
  FormatOption format{{"text", "json", "csv"}, "text"};
  OutputOption output, page;

  void add_to(CLI::App& command) {
    command
        .add_option("NAME", question.name,
                    "An operation (all_reduce, all_to_all, ...), an algorithm (ring, tree, "
                    "...), or auto for an all-reduce as NCCL would do it")
        ->required();
    add_network_to(command);
    command.add_option("--bytes", sizes, "A size, or sizes as nccl-tests takes them: 8..8GB/x2")
        ->type_name("SIZES");
    command.add_option("--algorithm", question.algorithm,
                       "Price this algorithm instead of the one that NCCL would choose");
    command.add_option("--operation", question.operation,
                       "The operation that the algorithm performs, if NAME is an algorithm");
    command
        .add_option(
            "--fidelity", question.fidelity,
            "closed: formulas; flow: every message, with links shared max-min fairly; packet: "
            "queues, drops and transports")
        ->type_name("closed|flow|packet");
    command
        .add_option("--packets", question.packets,
                    "Settings of --fidelity packet: transport=dctcp,spray=true")
        ->type_name("SETTINGS");
    command.footer(packet_help());
    command.add_option("--groups", question.groups,
                       "Number of communicators that run the collective at the same time, with "
                       "their ranks interleaved");
    command
        .add_option("--levels", question.levels,
                    "Group sizes of the hierarchical algorithm, innermost first: 8,4")
        ->delimiter(',');
    command.add_option("--servers", question.servers,
                       "Number of hosts that are only parameter servers");
    command.add_option("--seed", question.seed, "Seed of the choice among routes of equal cost");
    add_measured_to(command);
    format.add_to(command);
    output.add_to(command);
    page.add_to(command, "--html", "Also write a page with a plot over sizes");
  }

  void add_network_to(CLI::App& command) {
    command.add_option("--machine", question.machine,
                       "A built-in machine (see `foretrace list machines`), or the path of a file "
                       "that describes one");
    command.add_option("--ranks", question.ranks,
                       "Number of ranks; by default all that the machine has");
    command.add_option("--ranks-per-node", question.ranks_per_node,
                       "Number of devices used on each host; all by default");
    command
        .add_option("--latency", latency,
                    "Without --machine: latency of a message on a uniform network")
        ->type_name("TIME");
    command
        .add_option("--bandwidth", bandwidth,
                    "Without --machine: bandwidth of each rank on a uniform network, in each "
                    "direction")
        ->type_name("RATE");
  }

  void add_measured_to(CLI::App& command) {
    command
        .add_option("--against", question.against,
                    "Compare with measured times: output of nccl-tests, CSV with the columns "
                    "collective, bytes, gpus, nodes and time_us, or a recording of all ranks")
        ->type_name("FILE");
    command.add_option("--only", question.only, "Use only rows of CSV files whose COLUMN has TEXT")
        ->type_name("COLUMN=TEXT");
    command
        .add_option("--calibrate", question.calibrate,
                    "Calibrate with the measured times of a file as for --against, or with a saved "
                    "calibration (.json)")
        ->type_name("FILE");
    command
        .add_option("--calibrate-nodes", question.calibrate_nodes,
                    "Calibrate only with rows that have these numbers of nodes: 1,8,128")
        ->delimiter(',');
    names_output(command.add_option("--save-calibration", question.save_calibration,
                                    "Also save the calibration in a file, for --calibrate"));
  }

  static std::string packet_help() {
    std::ostringstream text;
    text << "Settings of packets:\n";
    PacketOptions options;
    write_help(options, text);
    return text.str();
  }

  void run(Session& session) {
    format.check();
    if (!latency.empty())
      question.latency = within("--latency", [&] { return parse_time(latency); });
    if (!bandwidth.empty())
      question.bandwidth = within("--bandwidth", [&] { return parse_bandwidth(bandwidth); });
    if (!sizes.empty()) question.sizes = within("--bytes", [&] { return read_sizes(sizes); });
    const CollectiveReport report = price_collective(question);
    if (!page.path.empty())
      page.write(session, [&](std::ostream& out) { write_collective_page(report, out); });
    output.write(session, [&](std::ostream& out) {
      if (format.chosen == "json") return print_json(to_json(report), out);
      if (format.chosen == "csv") return write_collective_csv(report, out);
      write_collective_text(report, out);
    });
  }
};

}  // namespace

void add_collective(CLI::App& command, Session& session) {
  add_command<CollectiveCommand>(command, session);
}

}  // namespace foretrace
