#pragma once

// A server of the Model Context Protocol (modelcontextprotocol.io, revision 2025-06-18): agents ask
// it what people ask at a shell. It speaks JSON-RPC 2.0 with one message per line.
//
//     line --parse--> message --method--> tool --run()--> text --> line
//
// A malformed message is answered with an error, and the server goes on with the next one.

#include <iosfwd>
#include <string>

namespace foretrace {

/// Serves until the end of `in`. Tools open only files in the folder `root`, and write none. If
/// `is_structured`, they declare schemas of their answers, and each answer has all of its JSON.
void serve_tools(std::istream& in, std::ostream& out, const std::string& root, bool is_structured);

}  // namespace foretrace
