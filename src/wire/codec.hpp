// Text of a message and back. A message is {"<name of the struct>": {members}}.
//
// Boost.JSON 1.81 converts described structs by itself, but refuses a missing member; the library
// of an older program must be able to leave one out. So the walk over the described members is ours
// (codec.cpp), the rest Boost's. Only codec.cpp includes JSON: it is slow to compile.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "wire/messages.hpp"

namespace elasticrun::wire {

// Instantiated in codec.cpp for Hello, Welcome and the four variants of messages.hpp.
template <class Message>
std::string encode(const Message& message);

// Errors name the member that was wrong; a name that is not known gives an error, too, which a
// caller may ignore if it negotiated with a newer peer.
template <class Message>
Result<Message> decode(std::string_view text);

}  // namespace elasticrun::wire
