/* Programs by the types that they are of: the host's. */
#pragma once

#include "../core/portable.h"
#include "../abi/program.h"

GPR_OPEN

/* A type's name, which the compiler that reads it on the other side knows it by. Compilers end
 * their function's name with it: "... [with T = gpr::gpu::IntegerSum<long unsigned int>]". */
template <class T> struct TypeName {
  static constexpr const char *function() { return __PRETTY_FUNCTION__; }
  static constexpr int start() {
    int at = 0;
    while (function()[at] != '[') at++;
    while (function()[at] != '=') at++;
    return at + 2;
  }
  static constexpr int length() {
    int end = start();
    while (function()[end]) end++;
    return end - 1 - start();
  }
  struct Text {
    char text[length() + 1];
  };
  static constexpr Text make() {
    Text name{};
    for (int i = 0; i < length(); i++) name.text[i] = function()[start() + i];
    return name;
  }
  static constexpr Text name = make();
};

/* KERNEL::header, ::text and ::defines say which; one object for each fold that it is made for. */
template <class F, class KERNEL> struct Program { static gpr_program it; };
template <class F, class KERNEL>
gpr_program Program<F, KERNEL>::it = {
    KERNEL::header, TypeName<F>::name.text, KERNEL::defines, KERNEL::text, nullptr, nullptr};

#define GPR_PROGRAM_KIND(kind, header_, defines_, text_)                               \
  struct kind {                                                                        \
    static constexpr const char *header = header_, *defines = defines_, *text = text_; \
  }

GPR_CLOSE
