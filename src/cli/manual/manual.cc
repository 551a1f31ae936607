#include "cli/manual/manual.h"

#include <algorithm>
#include <fmt/core.h>
#include <sstream>

#include "foretrace/error.h"
#include "foretrace/transform.h"
#include "foretrace/version.h"

namespace foretrace {
namespace {

/// Escapes the text so that roff prints every character as it is.
std::string roff(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else if ((c == '.' || c == '\'') && (escaped.empty() || escaped.back() == '\n')) {
      escaped += "\\&";
      escaped += c;
    } else {
      escaped += c;
    }
  }
  return escaped;
}

void write_page_heading(const std::string& name, int section, std::string_view summary,
                        std::ostream& out) {
  std::string title = name;
  std::transform(title.begin(), title.end(), title.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  out << ".TH " << roff(title) << ' ' << section << " \"\" \"foretrace " << kVersion
      << "\" Foretrace\n.SH NAME\n"
      << roff(name) << " \\- " << roff(summary) << '\n';
}

void write_preformatted(const std::string& text, std::ostream& out) {
  out << ".nf\n" << roff(text) << ".fi\n";
}

void write_exit_status(std::ostream& out) {
  out << ".SH EXIT STATUS\n.TP\n.B 0\nAnswered; every check and assertion holds.\n.TP\n.B 1\nA "
         "check found a regression, or an assertion fails.\n.TP\n.B 2\nWrong usage, or an invalid "
         "scenario.\n.TP\n.B 3\nThe trace cannot be used.\n.TP\n.B 4\nUndecided: the interval "
         "straddles the threshold.\n.TP\n.B 70\nA bug.\n";
}

std::string option_heading(const CLI::Option& option) {
  std::string heading;
  for (const std::string& name : option.get_snames())
    heading += fmt::format("{}\\fB\\-{}\\fR", heading.empty() ? "" : ", ", roff(name));
  for (const std::string& name : option.get_lnames())
    heading += fmt::format("{}\\fB\\-\\-{}\\fR", heading.empty() ? "" : ", ", roff(name));
  if (heading.empty()) heading = fmt::format("\\fI{}\\fR", roff(option.get_name(true)));
  const bool has_value = option.get_items_expected_max() != 0 && !option.get_positional();
  return has_value ? fmt::format("{} \\fI{}\\fR", heading, roff(option.get_type_name())) : heading;
}

void write_options(const CLI::App& command, std::ostream& out) {
  out << ".SH OPTIONS\n";
  for (const CLI::Option* option : command.get_options()) {
    out << ".TP\n" << option_heading(*option) << '\n' << roff(option->get_description()) << '\n';
  }
}

void write_synopsis(const std::string& path, const CLI::App& command, std::ostream& out) {
  out << ".SH SYNOPSIS\n.B " << roff(path) << "\n[\\fIOPTION\\fR]...";
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional()) continue;
    const bool required = option->get_required();
    out << ' ' << (required ? "" : "[") << "\\fI" << roff(option->get_name(true)) << "\\fR"
        << (required ? "" : "]");
  }
  out << '\n';
}

void write_command_page(const CLI::App& command, std::ostream& out) {
  write_page_heading("foretrace-" + command.get_name(), 1, command.get_description(), out);
  write_synopsis("foretrace " + command.get_name(), command, out);
  write_options(command, out);
  for (const CLI::App* inner : command.get_subcommands({})) {
    const std::string path = fmt::format("foretrace {} {}", command.get_name(), inner->get_name());
    out << ".SH " << roff(path) << '\n' << roff(inner->get_description()) << '\n';
    write_synopsis(path, *inner, out);
    write_options(*inner, out);
  }
  write_exit_status(out);
  out << ".SH SEE ALSO\n.BR foretrace (1),\n.BR foretrace\\-transforms (7)\n";
}

void write_program_page(const CLI::App& app, std::ostream& out) {
  write_page_heading("foretrace", 1, "predict training times from one trace", out);
  out << ".SH SYNOPSIS\n.B foretrace\n\\fICOMMAND\\fR [\\fIOPTION\\fR]... "
         "[\\fIARGUMENT\\fR]...\n.SH DESCRIPTION\n"
      << roff(app.get_description()) << "\n.SH COMMANDS\n";
  for (const CLI::App* command : app.get_subcommands({})) {
    out << ".TP\n\\fB" << roff(command->get_name()) << "\\fR\n"
        << roff(command->get_description()) << ".\nSee \\fBforetrace\\-"
        << roff(command->get_name()) << "\\fR(1).\n";
  }
  write_exit_status(out);
  out << ".SH ENVIRONMENT\n.TP\n.B XDG_CACHE_HOME\nFolder whose subfolder foretrace holds copies "
         "of traces that are slow to read; ~/.cache if not set.\n.SH SEE ALSO\n.BR "
         "foretrace\\-transforms (7)\n";
}

void write_transforms_page(std::ostream& out) {
  write_page_heading("foretrace-transforms", 7, "the changes that a scenario can make", out);
  out << ".SH DESCRIPTION\nGiven to \\fB\\-\\-with\\fR as NAME:SETTING=VALUE,SETTING=VALUE, and in "
         "scenario files as \"use\".\n";
  for (const TransformEntry& entry : transforms()) {
    out << ".SH " << roff(entry.name) << '\n'
        << roff(entry.summary) << ".\n.PP\n"
        << roff(entry.assumes) << '\n';
    std::ostringstream settings;
    write_help(*entry.make(), settings);
    write_preformatted(settings.str(), out);
  }
}

}  // namespace

void write_manual(const CLI::App& app, const std::string& name, std::ostream& out) {
  if (name.empty()) return write_program_page(app, out);
  if (name == "transforms") return write_transforms_page(out);
  if (const CLI::App* command = inner_command(app, name)) return write_command_page(*command, out);
  std::vector<std::string> names{"transforms"};
  for (const CommandEntry& entry : outer_commands()) names.push_back(entry.name);
  throw Error(fmt::format("there is no command '{}'{}", name, did_you_mean(name, names)));
}

}  // namespace foretrace
