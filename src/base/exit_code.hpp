// The exit codes of the program: one table shared by code, man page and tests.
#pragma once

namespace elasticrun::exit_code {

inline constexpr int ok = 0;
inline constexpr int usage = 2;              // wrong usage, configuration or host file
inline constexpr int stopped_saved = 75;     // stopped on request, and the state is saved
inline constexpr int internal = 120;         // a bug of ours
inline constexpr int nothing_started = 121;  // no host or worker could be started
inline constexpr int below_minimum = 122;    // too few workers past the deadline, or state lost
inline constexpr int budget_spent = 123;     // too many failures in a row, or no new step
inline constexpr int diverged = 124;         // states differ, and it is not known which is right
inline constexpr int not_executable = 126;   // as in a shell
inline constexpr int not_found = 127;        // as in a shell
inline constexpr int signal_base = 128;      // plus the number of the signal

}  // namespace elasticrun::exit_code
