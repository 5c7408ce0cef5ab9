// Xid messages: what NVIDIA's driver writes into the kernel's log when something is wrong with a
// GPU. The Xid is a number for the kind of error. Pure.
//
// Most Xids report a program's own mistakes (13, 31, 43), and the GPU goes on. Those in the table
// (xid.cpp) mean that the GPU does not work, or must not be used, until it has been reset; for them
// NVIDIA's Xid catalog and health checks call for a reset or a reboot. Newer drivers report the
// need for a reset themselves (154).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace elasticrun::launcher::machine {

struct Xid {
  std::string location;  // of the GPU, as the log writes it: "0000:3b:00"
  std::int32_t number = 0;
  std::string text;  // the part of the message after the number and its comma
};

// The Xid in one line of the kernel's log; nullopt when the line has none.
std::optional<Xid> parse_xid(std::string_view line);

// Whether the Xid is about the GPU at this bus location ("0000:3b:00.0").
bool is_of(const Xid& xid, std::string_view location);

// Why the GPU is lost and what to try; nullopt when it is still usable.
std::optional<std::string> loss(const Xid& xid);

}  // namespace elasticrun::launcher::machine
