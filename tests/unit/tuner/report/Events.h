#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

/// Events as a tuning session writes them, made up.
namespace deft::report {

inline nlohmann::json configJson(const std::string &partition, int chunk, int tileQ, int tileKv) {
  return {{"partition", partition},
          {"chunk_tokens", chunk},
          {"phases",
           {{{"name", "tiles"},
             {"rows_above", -1},
             {"family", "sm80"},
             {"tile_q", tileQ},
             {"tile_kv", tileKv},
             {"stages", 2},
             {"warps", 4}}}}};
}

inline const std::string kClass = "c1-t14-q6-s3-d2-f0";

inline nlohmann::json candidate(const std::string &id, const nlohmann::json &config,
                                const std::string &origin) {
  return {{"event", "candidate"}, {"class", kClass},  {"id", id},
          {"config", config},     {"origin", origin}, {"predicted_us", 12.5}};
}

inline nlohmann::json measured(const std::string &id, int tree, int round, const std::vector<double> &us) {
  return {{"event", "measured"}, {"class", kClass}, {"id", id}, {"tree", tree}, {"round", round}, {"us", us}};
}

/// One finished class: the untuned config, a faster one, one that was dropped, one that was wrong; and one
/// class that was not finished.
inline std::vector<nlohmann::json> sessionEvents() {
  return {
      {{"event", "session"},
       {"version", 1},
       {"variant", "llama3_8b"},
       {"signature", "q32-kv8-d128-bf16-p16nhd-plain"},
       {"device", {{"name", "A GPU"}, {"arch", "sm_90a"}, {"units", 132}}},
       {"backend", "cuda"},
       {"strategy", "guided"},
       {"space_size", {{"all", 2200}, {"legal", 880}, {"broken", {{"warps", 20}, {"shared memory", 1300}}}}},
       {"started", "2026-11-21T09:00:00Z"}},
      {{"event", "class"},
       {"class", kClass},
       {"default", "aa"},
       {"trees",
        {{{"name", "few_shot:step=1"}, {"tokens", 16000}, {"queries", 64}, {"held_out", false}},
         {{"name", "few_shot:step=2"}, {"tokens", 16500}, {"queries", 60}, {"held_out", true}}}}},
      candidate("aa", configJson("auto", 0, 64, 64), "default"),
      candidate("bb", configJson("union", 256, 128, 64), "guided"),
      candidate("cc", configJson("query", 512, 16, 128), "guided"),
      candidate("dd", configJson("node", 512, 16, 32), "neighbour"),
      measured("aa", 0, 0, {100}),
      measured("aa", 1, 0, {200}),
      measured("aa", 0, 1, {102, 98, 110}),
      measured("bb", 0, 0, {80}),
      measured("cc", 0, 0, {300}),
      measured("cc", 1, 0, {1200}),
      {{"event", "dropped"}, {"class", kClass}, {"id", "cc"}, {"round", 0}, {"ratio", 5.0}},
      {{"event", "rejected"},
       {"class", kClass},
       {"id", "dd"},
       {"stage", "check"},
       {"reason", "error 0.5 <b>& more</b>"}},
      {{"event", "scored"}, {"class", kClass}, {"id", "bb"}, {"us", 81.0}, {"ratio", 0.81}},
      measured("bb", 0, 1000000, {1}),
      {{"event", "done"},
       {"class", kClass},
       {"winner", "bb"},
       {"gain", 1.25},
       {"gain_error", 0.01},
       {"held_out", {{"gain", 1.2}, {"gain_error", 0.02}}},
       {"seconds", 7.5},
       {"note", ""},
       {"entry",
        {{"keeps_default", false},
         {"measurement", {{"tuned_us", 80.0}, {"untuned_us", 100.0}, {"spread", 0.01}}}}}},
      {{"event", "class"},
       {"class", "c1-t15-q6-s3-d2-f0"},
       {"default", "aa"},
       {"trees", nlohmann::json::array()}},
      {{"event", "end"}, {"reason", "budget"}, {"made", 9}, {"reused", 2}, {"seconds", 12.0}},
  };
}

} // namespace deft::report
