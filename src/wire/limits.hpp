// Every limit of the wire protocol in one place. All input from the network has limits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace elasticrun::wire {

// Bumped when an old peer could misread a new one. Controller and agent must have the same version
// of elasticrun; a library may be older or newer than its agent as long as this number is the same,
// because unknown JSON members are ignored and missing ones have defaults.
inline constexpr std::uint32_t protocol = 6;

inline constexpr std::size_t frame_bytes_max = 16u << 20;          // one frame, header not counted
inline constexpr std::size_t worker_message_bytes_max = 4u << 20;  // from a worker: others quote it
inline constexpr std::size_t greeting_bytes_max = 4096;      // from a peer that dials, as the first
inline constexpr std::size_t welcome_bytes_max = 1u << 20;   // the answer: it carries a command
inline constexpr std::size_t control_queue_max = 64u << 20;  // bytes waiting on one session
// Bytes of the messages of a host's workers that the controller has not acknowledged. The workers
// have equal shares: an agent reads no more from one that is above its share.
inline constexpr std::size_t worker_messages_high = 32u << 20;
inline constexpr std::size_t bulk_queue_high = 1u << 20;     // above: output waits in worker pipes
inline constexpr std::size_t line_bytes_max = 16u << 10;     // longer output lines are cut
inline constexpr std::size_t address_bytes_max = 64u << 10;  // what a rank publishes for its group
inline constexpr std::size_t world_size_max = 131'072;
inline constexpr std::size_t list_max = 1u << 20;  // a command line can have this many arguments
// A file of a save, or what travels with the state to newcomers: 64 MiB of objects, in hexadecimal
// digits, and the names of a million arrays. No frame of a connection.
inline constexpr std::size_t saved_text_bytes_max = 256u << 20;

}  // namespace elasticrun::wire
