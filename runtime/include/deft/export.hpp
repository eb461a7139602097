#pragma once

/// Marks what the library gives to programs; everything else in it is hidden.
#if defined(__GNUC__)
#define DEFT_API __attribute__((visibility("default")))
#else
#define DEFT_API
#endif
