#include "tuner/bench/KernelRows.h"

namespace deft::bench {

namespace {

// clang-format off
constexpr KernelRow kFasttree[] = {
    {"F9_01_g4", "levels:nodes=1,2,64,tokens=8,256,32", "h32_8", 6.1, 17.0, "PAT", 25},
    {"F9_02_g4", "levels:nodes=1,4,256,tokens=8,256,32", "h32_8", 11.8, 42.2, "PAT", 81},
    {"F9_03_g4", "levels:nodes=1,4,8,256,tokens=8,256,256,32", "h32_8", 13.8, 46.8, "PAT", 113},
    {"F9_04_g4", "levels:nodes=1,256,tokens=256,32", "h32_8", 11.4, 37.4, "PAT", 80},
    {"F9_05_g4", "levels:nodes=1,1024,tokens=2048,32", "h32_8", 49.7, 195.8, "PAT", 1075},
    {"F9_06_g4", "levels:nodes=1,16,64,tokens=1024,256,32", "h32_8", 10.3, 34.4, "PAT", 53},
    {"F9_07_g4", "levels:nodes=1,4,16,512,tokens=1024,256,128,32", "h32_8", 21.8, 91.1, "PAT", 405},
    {"F9_08_g4", "levels:nodes=1,4,16,64,256,1024,tokens=256,8,256,64,32,256", "h32_8", 248.1, 402.9, "FastTree", 611},
    {"F9_09_g4", "levels:nodes=1,10,tokens=4000,400", "h32_8", 10.6, 30.2, "FastTree", 35},
    {"F9_10_g4", "levels:nodes=1,2,4,8,16,32,64,128,1024,tokens=16,16,16,16,16,16,16,16,16", "h32_8", 21.9, 98.5, "PAT", 234},
    {"F9_11_g4", "levels:nodes=1,2,4,8,16,32,64,128,1024,tokens=256,128,64,16,16,16,16,16,16", "h32_8", 22.3, 117.2, "PAT", 402},
    {"F9_12_g4", "levels:nodes=1,8,16,32,64,128,1024,tokens=256,128,64,16,16,16,16", "h32_8", 23.6, 117.0, "PAT", 353},
    {"F9_13_g4", "levels:nodes=1,8,16,32,64,256,1024,tokens=256,128,64,16,16,16,16", "h32_8", 25.3, 115.5, "PAT", 355},
    {"F9_14_g4", "levels:nodes=1,16,32,64,128,1024,tokens=256,128,64,16,16,16", "h32_8", 24.9, 117.0, "PAT", 353},
    {"F9_15_g4", "levels:nodes=1,16,32,64,256,1024,tokens=256,128,64,16,16,16", "h32_8", 26.9, 115.8, "PAT", 354},
    {"F9_01_g1", "levels:nodes=1,2,64,tokens=8,256,32", "h32_32", 13.0, 29.0, "PAT", 84},
    {"F9_02_g1", "levels:nodes=1,4,256,tokens=8,256,32", "h32_32", 36.0, 77.7, "PAT", 289},
    {"F9_03_g1", "levels:nodes=1,4,8,256,tokens=8,256,256,32", "h32_32", 43.8, 93.4, "FastTree", 403},
    {"F9_04_g1", "levels:nodes=1,256,tokens=256,32", "h32_32", 33.8, 64.1, "PAT", 289},
    {"F9_05_g1", "levels:nodes=1,1024,tokens=2048,32", "h32_32", 127.0, 295.3, "PAT", 4230},
    {"F9_06_g1", "levels:nodes=1,16,64,tokens=1024,256,32", "h32_32", 29.5, 53.2, "PAT", 195},
    {"F9_07_g1", "levels:nodes=1,4,16,512,tokens=1024,256,128,32", "h32_32", 76.4, 151.1, "PAT", 1560},
    {"F9_08_g1", "levels:nodes=1,4,16,64,256,1024,tokens=256,8,256,64,32,256", "h32_32", 979.0, 1232.3, "FastTree", 2371},
    {"F9_09_g1", "levels:nodes=1,10,tokens=4000,400", "h32_32", 33.5, 50.2, "PAT", 135},
    {"F9_10_g1", "levels:nodes=1,2,4,8,16,32,64,128,1024,tokens=16,16,16,16,16,16,16,16,16", "h32_32", 76.5, 170.3, "PAT", 881},
    {"F9_11_g1", "levels:nodes=1,2,4,8,16,32,64,128,1024,tokens=256,128,64,16,16,16,16,16,16", "h32_32", 78.8, 195.2, "PAT", 1524},
    {"F9_12_g1", "levels:nodes=1,8,16,32,64,128,1024,tokens=256,128,64,16,16,16,16", "h32_32", 82.8, 194.4, "PAT", 1328},
    {"F9_13_g1", "levels:nodes=1,8,16,32,64,256,1024,tokens=256,128,64,16,16,16,16", "h32_32", 90.1, 206.9, "PAT", 1328},
    {"F9_14_g1", "levels:nodes=1,16,32,64,128,1024,tokens=256,128,64,16,16,16", "h32_32", 88.1, 205.1, "PAT", 1340},
    {"F9_15_g1", "levels:nodes=1,16,32,64,256,1024,tokens=256,128,64,16,16,16", "h32_32", 95.4, 213.7, "PAT", 1332},
    {"F9_01_g16", "levels:nodes=1,2,64,tokens=8,256,32", "h16_1", 4.0, 12.7, "FastTree, no greedy", 13},
    {"F9_02_g16", "levels:nodes=1,4,256,tokens=8,256,32", "h16_1", 4.6, 15.1, "FlashInfer decode TC", 15},
    {"F9_03_g16", "levels:nodes=1,4,8,256,tokens=8,256,256,32", "h16_1", 4.9, 18.4, "FlashInfer decode TC", 18},
    {"F9_04_g16", "levels:nodes=1,256,tokens=256,32", "h16_1", 4.4, 15.1, "FlashInfer persistent", 15},
    {"F9_05_g16", "levels:nodes=1,1024,tokens=2048,32", "h16_1", 26.2, 119.8, "FastTree", 139},
    {"F9_06_g16", "levels:nodes=1,16,64,tokens=1024,256,32", "h16_1", 4.6, 15.9, "FastTree, no greedy", 19},
    {"F9_07_g16", "levels:nodes=1,4,16,512,tokens=1024,256,128,32", "h16_1", 10.9, 54.9, "FlashInfer persistent", 55},
    {"F9_08_g16", "levels:nodes=1,4,16,64,256,1024,tokens=256,8,256,64,32,256", "h16_1", 34.1, 91.0, "FlashInfer decode TC", 91},
    {"F9_09_g16", "levels:nodes=1,10,tokens=4000,400", "h16_1", 4.5, 17.4, "FlashInfer persistent", 17},
    {"F9_10_g16", "levels:nodes=1,2,4,8,16,32,64,128,1024,tokens=16,16,16,16,16,16,16,16,16", "h16_1", 5.9, 34.6, "FlashInfer persistent", 35},
    {"F9_11_g16", "levels:nodes=1,2,4,8,16,32,64,128,1024,tokens=256,128,64,16,16,16,16,16,16", "h16_1", 8.9, 56.1, "FlashInfer persistent", 56},
    {"F9_12_g16", "levels:nodes=1,8,16,32,64,128,1024,tokens=256,128,64,16,16,16,16", "h16_1", 8.6, 51.1, "FlashInfer persistent", 51},
    {"F9_13_g16", "levels:nodes=1,8,16,32,64,256,1024,tokens=256,128,64,16,16,16,16", "h16_1", 8.6, 51.2, "FlashInfer persistent", 51},
    {"F9_14_g16", "levels:nodes=1,16,32,64,128,1024,tokens=256,128,64,16,16,16", "h16_1", 8.4, 50.4, "FlashInfer persistent", 50},
    {"F9_15_g16", "levels:nodes=1,16,32,64,256,1024,tokens=256,128,64,16,16,16", "h16_1", 8.4, 51.0, "FlashInfer persistent", 51},
};

constexpr KernelRow kDeft[] = {
    {"FS_b20", "levels:nodes=1,20,tokens=4000,200", "h32_8", 10.7, 30.7, "PAT", 66},
    {"FS_b30", "levels:nodes=1,30,tokens=4000,200", "h32_8", 12.2, 39.2, "FlashInfer cascade", 69},
    {"FS_b50", "levels:nodes=1,50,tokens=4000,200", "h32_8", 16.3, 55.5, "FlashInfer cascade", 131},
    {"SP_t32", "speculative_t32:prompt=4000", "h32_8", 7.1, 30.2, "FlashInfer cascade", 65},
    {"SP_t64", "speculative_t64:prompt=4000", "h32_8", 8.4, 46.2, "FlashInfer cascade", 123},
    {"SP_t128", "speculative_t128:prompt=4000", "h32_8", 14.1, 65.0, "FastTree", 241},
    {"SP_t256", "speculative_t256:prompt=4000", "h32_8", 25.4, 89.5, "PAT", 471},
    {"RS_3lvl", "levels:nodes=1,10,10,tokens=1000,300,100", "h32_8", 8.1, 17.2, "FastTree", 20},
    {"TOT_document", "reasoning_document:tree=0,step=1717", "h32_8", 10.5, 27.2, "FastTree, no greedy", 32},
    {"TOT_keyword", "reasoning_keyword:tree=0,step=47", "h32_8", 5.4, 15.2, "PAT", 20},
    {"TOT_set", "reasoning_set:tree=3,step=89", "h32_8", 6.0, 22.4, "FastTree", 33},
    {"TOT_sorting", "reasoning_sorting:tree=6,step=1330", "h32_8", 12.4, 35.8, "FastTree", 46},
};

constexpr KernelRow kFlat[] = {
    {"flat_256x1k", "levels:nodes=256,tokens=1024", "h32_8", 239, 261, "PAT, FlashInfer persistent", 261},
    {"flat_256x4k", "levels:nodes=256,tokens=4096", "h32_8", 943, 966, "PAT, FlashInfer persistent", 966},
    {"flat_8x32k", "levels:nodes=8,tokens=32768", "h32_8", 239, 249, "PAT, FlashInfer persistent", 249},
};
// clang-format on

} // namespace

std::span<const KernelRow> fasttreeRows() { return kFasttree; }
std::span<const KernelRow> deftRows() { return kDeft; }
std::span<const KernelRow> flatRows() { return kFlat; }

} // namespace deft::bench
