// Lets a coroutine wait for a call on a FileThread; the wait can be cancelled.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "launcher/executors/file_thread.hpp"

namespace elasticrun::launcher::ssh {

// Most calls that may queue up behind one that hangs. A later call is not even queued: its caller
// waits until its own deadline.
inline constexpr std::size_t awaited_max = 1000;

// Runs `call` on the FileThread and returns its result. As for FileThread::run, `call` uses nothing
// but what it has captured by value. The caller must keep it in a named variable: g++ 12 destroys a
// closure that is a temporary of a co_await twice.
template <class Call>
boost::asio::awaitable<std::invoke_result_t<Call>> await_files(boost::asio::io_context& io,
                                                               executors::FileThread& files,
                                                               Call& call) {
  using Value = std::invoke_result_t<Call>;
  struct Wait {
    explicit Wait(boost::asio::io_context& context)
        : over(context, boost::asio::steady_timer::time_point::max()) {}
    std::optional<Value> value;
    boost::asio::steady_timer over;
  };
  const auto wait = std::make_shared<Wait>(io);
  if (files.awaited() < awaited_max)
    files.run(
        [call = std::move(call), weak = std::weak_ptr(wait)]() -> executors::FileThread::Answer {
          if (weak.expired()) return [] {};  // the coroutine was cancelled
          const auto value = std::make_shared<Value>(call());
          return [value, weak] {
            const auto waiting = weak.lock();
            if (!waiting) return;
            waiting->value = std::move(*value);
            waiting->over.cancel();
          };
        });
  boost::system::error_code ignored;
  co_await wait->over.async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, ignored));
  if (!wait->value) throw boost::system::system_error(boost::asio::error::operation_aborted);
  co_return std::move(*wait->value);
}

}  // namespace elasticrun::launcher::ssh
