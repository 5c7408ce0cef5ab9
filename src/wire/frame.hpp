// Frames: how messages are laid out on a byte stream.
//
//   u32 payload length (big endian) | u32 worker id (big endian) | payload
//
// The highest bit of the length marks a passing frame: one that is not counted, and not sent again
// over the next connection (net/resumable.hpp).
//
// The worker id is the envelope. 0 means the peer itself; the highest number means several workers,
// which are listed in front of the message (for_several); any other number is the worker that the
// message is for or from. An agent relays messages without reading them, so the id stands in the
// header and not in the JSON text. A text protocol with line ends would be easier to watch, but
// each payload would have to be escaped or scanned, and a limit could only be enforced after the
// bytes have arrived.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"

namespace elasticrun::wire {

inline constexpr std::size_t frame_header_bytes = 8;

// Appends one frame. The caller must ensure payload.size() <= frame_bytes_max (checked).
void append_frame(std::string& out, WorkerId worker, std::string_view payload,
                  bool passing = false);

// The worker id of one message for several workers of a host, which is encoded and sent once.
inline constexpr WorkerId several_workers{~0u};
struct ForSeveral {
  std::vector<WorkerId> workers;
  std::string_view message;  // part of the payload
};
// The payload of such a frame: u32 number of workers | u32 worker id, for each | message
std::string for_several(const std::vector<WorkerId>& workers, std::string_view message);
Result<ForSeveral> read_for_several(std::string_view payload);

struct Frame {
  WorkerId worker;
  std::string_view payload;  // valid until the next call of feed
  bool passing = false;
};

// Cuts a byte stream into frames. Pure: bytes in, frames out. Memory grows with the bytes that have
// arrived, never with a length that a peer merely claims.
class FrameReader {
 public:
  explicit FrameReader(std::size_t payload_max) : payload_max_(payload_max) {}

  // Applies to all frames that next() has not returned yet.
  void set_payload_max(std::size_t payload_max) { payload_max_ = payload_max; }
  void feed(std::string_view bytes);
  // The next whole frame; nullopt: it has not arrived completely. After an error the stream is
  // lost: there is no way to find the next frame, and each further call gives the same error.
  Result<std::optional<Frame>> next();

 private:
  std::size_t payload_max_;
  std::string buffer_;
  std::size_t begin_ = 0;  // bytes before this offset were returned already
};

}  // namespace elasticrun::wire
