// What NVIDIA's driver writes into the kernel's log when something is wrong with a GPU: an Xid, a
// number for the kind of trouble. Pure.
//
// Most of them tell of a program's own mistakes (13, 31, 43), and the GPU goes on. Those in the
// table here tell that it does not, or must not, before somebody has reset it; they are what
// NVIDIA's catalog of Xids and its health checks answer with a reset or a reboot. Newer drivers
// say so themselves (154).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace elasticrun::launcher::machine {

struct Xid {
  std::string location;  // of the GPU, as the log has it: "0000:3b:00"
  std::int32_t number = 0;
  std::string text;  // what follows
};

// Of one line of the log; nothing: it tells of no Xid.
std::optional<Xid> parse_xid(std::string_view line);

// The GPU at this place ("0000:3b:00.0") is meant.
bool is_of(const Xid& xid, std::string_view location);

// That the GPU is of no use any more, and what to try; empty: it goes on.
std::string loss(const Xid& xid);

}  // namespace elasticrun::launcher::machine
