#pragma once

#include <string>

/// Numbers as people read them.
namespace deft::support {

/// 1234567 as 1,234,567.
std::string withSeparators(long long value);
/// "1 item", "1,024 items".
std::string counted(long long count, const char *one, const char *many);
/// With so many decimals.
std::string rounded(double value, int decimals);
/// With so many digits that mean something, as "%.2g".
std::string significant(double value, int digits);
/// In kB, MB or GB.
std::string bytesOf(double bytes);

} // namespace deft::support
