#include "tuner/calibrate/FitPrices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace deft::calibrate {
namespace {

using config::CostCoefficients;

/// Amounts of what a plan pays for.
struct Amounts {
  double megabytes, items, launches, merges;
};
constexpr Amounts kAmounts[] = {{1, 2, 1, 0},   {40, 2, 1, 0},  {40, 30, 1, 1}, {5, 60, 1, 0}, {80, 10, 1, 1},
                                {0.1, 1, 1, 0}, {0.1, 1, 1, 1}, {20, 5, 1, 0},  {2, 90, 1, 1}, {60, 3, 1, 0}};

double priceOf(const Amounts &amounts, const CostCoefficients &cost) {
  return amounts.megabytes * 1e3 / cost.cacheGBs + amounts.items * cost.itemUs +
         amounts.launches * cost.launchUs + amounts.merges * cost.mergeUs;
}

std::vector<Observation> observationsOf(const CostCoefficients &truth, double noise) {
  std::mt19937 engine(7);
  std::vector<Observation> all;
  for (const Amounts &amounts : kAmounts)
    all.push_back({priceOf(amounts, truth) * std::exp(noise * std::normal_distribution<double>()(engine)),
                   [amounts](const CostCoefficients &cost) { return priceOf(amounts, cost); }});
  return all;
}

CostCoefficients otherMachine() {
  CostCoefficients truth;
  truth.cacheGBs /= 1.7;
  truth.itemUs *= 2;
  truth.launchUs *= 0.6;
  truth.mergeUs *= 1.5;
  return truth;
}

TEST(FitPricesTest, PricesOfAnotherMachineAreFound) {
  const CostCoefficients truth = otherMachine();
  const PriceFit fit = fitPrices(observationsOf(truth, 0.01), {}, config::priceNames());
  for (double CostCoefficients::*price : {&CostCoefficients::cacheGBs, &CostCoefficients::itemUs,
                                          &CostCoefficients::launchUs, &CostCoefficients::mergeUs})
    EXPECT_NEAR(fit.after.*price / truth.*price, 1, 0.1); // twice off before, 1 % of noise
}

TEST(FitPricesTest, APriceThatNoObservationPaysStaysAndIsNotDecided) {
  const PriceFit fit = fitPrices(observationsOf(otherMachine(), 0.01), {}, config::priceNames());
  for (const FittedPrice &price : fit.prices) {
    const std::string key = price.name.key;
    const bool isPaid = key == "cache_gb_s" || key == "item_us" || key == "launch_us" || key == "merge_us";
    EXPECT_EQ(price.isDecided, isPaid) << key;
    if (!isPaid) {
      EXPECT_EQ(price.factor, 1) << key;
      EXPECT_EQ(fit.after.*price.name.member, CostCoefficients().*price.name.member) << key;
    }
  }
}

TEST(FitPricesTest, PricesOfChunksMoveAsThePricesThatTheyStandFor) {
  PriceFit fit = fitPrices(observationsOf(otherMachine(), 0.01), {}, config::priceNames());
  moveChunkPrices(fit, 1.4);
  const CostCoefficients before, moved = movedAlike(before, fit);
  EXPECT_EQ(fit.after.chunkTokenUs, moved.chunkTokenUs);
  EXPECT_EQ(fit.after.latentItemUs, moved.latentItemUs);
  EXPECT_NEAR(moved.chunkTokenUs, 1.4 * before.chunkTokenUs, 1e-12);
  EXPECT_NEAR(moved.latentTokenUs, 1.4 * before.latentTokenUs, 1e-12);
  EXPECT_NEAR(moved.chunkItemUs / before.chunkItemUs, moved.itemUs / before.itemUs, 1e-12);
  EXPECT_NEAR(moved.latentItemUs / before.latentItemUs, moved.itemUs / before.itemUs, 1e-12);
  EXPECT_NEAR(moved.chunkMergeUs / before.chunkMergeUs, moved.mergeUs / before.mergeUs, 1e-12);
  EXPECT_EQ(moved.chunkPartialGBs, before.chunkPartialGBs) << "no probe pays partial_gb_s";
  const auto isDecided = [&](double CostCoefficients::*member) {
    return std::any_of(fit.prices.begin(), fit.prices.end(), [&](const FittedPrice &price) {
      return price.name.member == member && price.isDecided;
    });
  };
  EXPECT_TRUE(isDecided(&CostCoefficients::chunkItemUs));
  EXPECT_FALSE(isDecided(&CostCoefficients::chunkPartialGBs));
}

TEST(FitPricesTest, OneDisturbedObservationMovesLittle) {
  const CostCoefficients truth = otherMachine();
  auto observations = observationsOf(truth, 0.01);
  observations[3].us *= 5;
  const PriceFit fit = fitPrices(observations, {}, config::priceNames());
  EXPECT_NEAR(fit.after.cacheGBs / truth.cacheGBs, 1, 0.15);
  EXPECT_NEAR(fit.after.launchUs / truth.launchUs, 1, 0.15);
}

TEST(FitPricesTest, PricesThatAreRightStay) {
  const CostCoefficients truth = otherMachine();
  const PriceFit fit = fitPrices(observationsOf(truth, 0), truth, config::priceNames());
  for (const FittedPrice &price : fit.prices)
    EXPECT_NEAR(price.factor, 1, 1e-3) << price.name.key;
}

TEST(FitPricesTest, APriceOfNothingStaysNothing) {
  CostCoefficients start;
  start.mergeUs = 0;
  const PriceFit fit = fitPrices(observationsOf(otherMachine(), 0.01), start, config::priceNames());
  EXPECT_EQ(fit.after.mergeUs, 0);
  for (const FittedPrice &price : fit.prices)
    EXPECT_STRNE(price.name.key, "merge_us");
}

TEST(FitPricesTest, AnotherSetMovesByTheSameFactors) {
  const PriceFit fit = fitPrices(observationsOf(otherMachine(), 0), {}, config::priceNames());
  CostCoefficients other;
  other.itemUs = 10;
  EXPECT_DOUBLE_EQ(movedAlike(other, fit).itemUs, 10 * fit.after.itemUs / CostCoefficients().itemUs);
}

} // namespace
} // namespace deft::calibrate
