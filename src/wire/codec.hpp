// Converts messages to text and back. A message is {"<name of the struct>": {members}}.
//
// Boost.JSON 1.81 can convert described structs by itself, but refuses a missing member, and the
// library in an older program must be able to leave one out. So the walk over the described members
// is our own code (codec.cpp), and the rest is Boost's. Only codec.cpp includes Boost.JSON, since
// it is slow to compile.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "wire/messages.hpp"

namespace elasticrun::wire {

// Instantiated in codec.cpp for Hello, Welcome and the four variants of messages.hpp.
template <class Message>
std::string encode(const Message& message);

// Errors name the member that was wrong. A message with an unknown name also gives an error, which
// a caller may ignore if it talks to a newer peer.
template <class Message>
Result<Message> decode(std::string_view text);

}  // namespace elasticrun::wire
