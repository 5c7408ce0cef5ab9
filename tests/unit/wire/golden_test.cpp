// The encoded text of every message. A change here is a change of the protocol: consider peers of
// another version, and wire::protocol in limits.hpp.
#include <doctest/doctest.h>

#include <set>
#include <string>

#include "wire/codec.hpp"

using namespace elasticrun;
using namespace std::string_literals;

namespace {

// Each text must decode and encode to itself, and every alternative must have one.
template <class Variant>
void check_texts(std::initializer_list<std::string> texts) {
  std::set<std::size_t> seen;
  for (const std::string& text : texts) {
    CAPTURE(text);
    const auto message = wire::decode<Variant>(text);
    REQUIRE_MESSAGE(message.has_value(), message.error().text);
    CHECK(wire::encode(*message) == text);
    seen.insert(message->index());
  }
  CHECK(seen.size() == std::variant_size_v<Variant>);
}

template <class Struct>
void check_text(const char* text) {
  const auto message = wire::decode<Struct>(text);
  REQUIRE(message.has_value());
  CHECK(wire::encode(*message) == text);
}

}  // namespace

TEST_CASE("greetings") {
  check_text<wire::Hello>(
      R"({"Hello":{"protocol":2,"version":"0.1.0","role":"agent","job":"j","term":2,"proof":"ab","host":3,"worker":4,"pid":5,"resumes":7,"name":"n1","slots":2,"address":"10.0.0.2","free_port":6,"gpus":["0"],"reason":"was killed"}})");
  check_text<wire::Welcome>(
      R"({"Welcome":{"protocol":2,"version":"0.1.0","term":2,"refused":"no","proof":"ab","received":8,"host":3,"identity":"j/host/3","key_hex":"00","lease_ms":4,"heartbeat_ms":5,"orphan_grace_ms":6,"standstill_ms":7,"notice":"w"}})");
}

TEST_CASE("messages to a worker") {
  check_texts<wire::ToWorker>({
      R"({"Prepare":{"world":{"generation":3,"members":[{"worker":1,"host":2,"slot":3,"count":1,"per_host":1,"holds_state":true}],"plan":{"global_batch":64,"micro_batch":8,"weights":[{"value":1,"count":1},{"value":"0.1","count":1}],"keeper":1,"lr_factor":"1.5","noise_base":32,"adascale":true},"reason":"grow","restore":"/s/save-1"},"secret":"00ff","connect_ms":24000}})",
      R"({"Gathered":{"generation":3,"values":["a",{"b64":"/wA="}],"ranks":[2,5]}})",
      R"({"Go":{"generation":3,"at_once":true}})",
      R"({"Cancel":{"generation":3}})",
      R"({"Abort":{"generation":3,"reason":"host n1 is silent","after":7,"collectives":2}})",
      R"({"Save":{"number":4,"folder":"/s/.saving-4","stop":true,"alone":false}})",
      R"({"Save":{"number":5,"folder":"/s/.saving-5","stop":false,"alone":true}})",
      R"({"Release":{"call":2}})",
      R"({"Dismiss":{"reason":"evicted"}})",
      R"({"Lease":{"ends_ns":5}})",
  });
}

TEST_CASE("messages from a worker") {
  check_texts<wire::FromWorker>({
      R"({"Join":{"protocol":2,"version":"0.1.0"}})",
      R"({"Ready":{"train":{"call":1,"samples":60000,"epochs":5,"batch":32,"base_batch":64,"state_bytes":4096,"state_layout":18446744073709551615,"save_trouble":"none"}}})",
      R"({"Publish":{"generation":3,"value":"addr","needs":[1,4]}})",
      R"({"Prepared":{"generation":3,"formation":"gloo","rejected":2}})",
      R"({"PrepareFailed":{"generation":3,"reason":"no route","complaints":[{"about":2,"hung_up":false,"waits":false,"reason":"10.0.0.2:4711: No route to host"}]}})",
      R"({"Answer":{"generation":3,"committed":-1,"complaints":[{"about":2,"hung_up":false,"waits":true,"reason":"it was waited for"}]}})",
      R"({"Entered":{"generation":3,"step":10,"idle_ns":-1,"transfer_ns":5,"transfer_bytes":6}})",
      R"({"Committed":{"generation":3,"step":11}})",
      R"({"Broken":{"generation":3,"reason":"peer","complaints":[{"about":2,"hung_up":true,"waits":false,"reason":"10.0.0.2:4711: closed"}]}})",
      R"({"Saved":{"number":4,"generation":3,"step":9,"rank":1,"size":2,"call":1,"epoch":2,"cursor":64,"files":[{"name":"part-1","bytes":100,"hash":"00ff"}],"held_ns":5,"took_ns":6,"error":"the disk is full","source_layout":7}})",
      R"({"Unreadable":{"generation":3,"save":"/s/save-4","reason":"part-1 is torn","of_reader":false}})",
      R"({"Sample":{"generation":3,"step":11,"steps":2,"samples":64,"wall_ns":9,"compute_ns":8,"reduce_ns":7,"waiting_ns":6,"phase":"reduce","transfer_bytes":5,"noise":[{"square":"0.5","variance":64,"steps":7,"biased":true,"scale_invariant_steps":"9.5"}],"lost_link":true}})",
      R"({"StepSamples":{"generation":3,"epoch":2,"by_rank":["7 8",""]}})",
      R"({"Diverged":{"generation":3,"step":11,"odd":[2],"where":"bytes 0 to 99 of 'w'","mixed":true}})",
      R"({"Done":{"call":1,"step":99}})",
      R"({"Leave":{"reason":"bye","step":20,"collectives":1}})",
  });
}

TEST_CASE("messages to and from an agent") {
  check_texts<wire::agent::ToAgent>({
      R"({"StartWorker":{"worker":1,"slot":2,"argv":["./train","-v"],"env":["A=b"],"cwd":"/tmp","bundle":"00ff","bundle_bytes":9,"after_ms":0}})",
      R"({"StopWorker":{"worker":1,"signal":15,"grace_ns":30000000000}})",
      R"({"SignalWorker":{"worker":1,"signal":10}})",
      R"({"Heartbeat":{"term":2,"clock_ns":5,"received":9}})",
      R"({"Shutdown":{"grace_ns":5}})",
      R"({"HoldOutput":{"hold":true}})",
      R"({"BundlePart":{"bundle":"00ff","file":"train","executable":true,"last":false,"trouble":""}})"
      "\0\x7f\x45\0\xff"s,
  });
  check_texts<wire::agent::FromAgent>({
      R"({"WorkerStarted":{"worker":1,"pid":4711}})",
      R"({"StartFailed":{"worker":1,"code":127,"reason":"not found"}})",
      R"({"WorkerDies":{"worker":1,"code":0,"signal":9,"error":""}})",
      R"({"WorkerExited":{"worker":1,"code":0,"signal":9,"host_ends":"","error":"","error_ns":0,"free_port":0}})",
      R"({"Output":{"worker":1,"stream":2}})"
      "\0a\n"s,
      R"({"Heartbeat":{"term":2,"clock_ns":5,"received":9}})",
      R"({"BundleWanted":{"bundle":"00ff","taken":1048576,"resumes":false}})",
      R"({"Progress":{"worker":1,"steps":3,"samples":96,"wall_ns":500000000}})",
      R"({"HostLeaves":{"reason":"a reboot"}})",
      R"({"StopAsked":{"signal":15,"of_job":true}})",
      R"({"Goodbye":{"reason":"its agent was killed"}})",
      R"({"GpuLost":{"slot":1,"gpu":"GPU-a","xid":79,"reason":"has fallen"}})",
  });
}

TEST_CASE("what is written about a save") {
  check_text<wire::saved::Manifest>(
      R"({"Manifest":{"version":1,"step":9,"call":1,"epoch":2,"cursor":64,"samples":128,"state_bytes":100,"state_layout":7,"job":"j","argv":["./train"],"written":"2026-11-24T11:27:28.354Z","files":[{"name":"contents","bytes":3,"hash":"00ff"}]}})");
  check_text<wire::saved::Contents>(
      R"({"Contents":{"progress":"2 1","arrays":[{"kind":"state","name":"w","type":"","bytes":100}],"objects":""}})");
}
