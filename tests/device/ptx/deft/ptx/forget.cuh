#pragma once

namespace deft::ptx {

template <class T> void forgetHere(T &) {}
template <class T> void forget(T &) {}

} // namespace deft::ptx
