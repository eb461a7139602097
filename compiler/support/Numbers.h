#pragma once

#include <string>

/// Formats numbers for people.
namespace deft::support {

/// 1234567 as 1,234,567.
std::string withSeparators(long long value);
/// "1 item", "1,024 items".
std::string counted(long long count, const char *one, const char *many);
/// With `decimals` decimals.
std::string rounded(double value, int decimals);
/// With `digits` significant digits, as "%.2g".
std::string significant(double value, int digits);
/// In kB, MB or GB.
std::string bytesOf(double bytes);

} // namespace deft::support
