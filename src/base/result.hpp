// Expected failures are values: Result<T> is a T, or an Error that says what is wrong, where, and
// what to try.
#pragma once

#include <boost/system/result.hpp>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace elasticrun {

// One line for the user: what is wrong, where (file and line, host, flag), what to try.
struct Error {
  std::string text;
  // The system's error number, where the caller of a driver may want to act on it; 0: not set.
  int number = 0;
};

[[noreturn]] inline void throw_exception_from_error(const Error& error,
                                                    const boost::source_location&) {
  throw std::runtime_error(error.text);
}

template <class T>
using Result = boost::system::result<T, Error>;

// A good result. Only a text needs this: as an argument of Result it could be the error's, too.
template <class T>
Result<std::decay_t<T>> ok(T&& value) {
  return {boost::system::in_place_value, std::forward<T>(value)};
}

}  // namespace elasticrun
