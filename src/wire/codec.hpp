// Converts messages to text and back. A message is {"<name of the struct>": {members}}. The bytes
// of a message that has any follow as they are, after a zero byte.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "wire/agent/messages.hpp"
#include "wire/greeting.hpp"
#include "wire/messages.hpp"
#include "wire/saved/manifest.hpp"

namespace elasticrun::wire {

// Instantiated in codec.cpp for Hello, Welcome, the four variants of messages, saved::Manifest and
// saved::Contents.
template <class Message>
std::string encode(const Message& message);

// Errors name the member that was wrong. A message with an unknown name also gives an error, which
// a caller may ignore if it talks to a newer peer.
template <class Message>
Result<Message> decode(std::string_view text);

}  // namespace elasticrun::wire
