#pragma once

// A server of the Model Context Protocol: JSON-RPC 2.0, a message a line, by which agents ask what
// people ask at a shell (modelcontextprotocol.io, revision 2025-06-18).
//
//     line --parse--> message --method--> tool --run()--> text --> line
//
// A message that cannot be understood is answered with an error, and the next one is read.

#include <iosfwd>
#include <string>

namespace foretrace {

/// Serves until the end of `in`. Tools open only files in `root`, and write none.
void serve_tools(std::istream& in, std::ostream& out, const std::string& root);

}  // namespace foretrace
