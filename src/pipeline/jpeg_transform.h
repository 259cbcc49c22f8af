// The constants of libjpeg-turbo's accurate integer inverse transform (Loeffler, Ligtenberg and Moschytz, 1989: 11
// multiplications for 8 values) and of its conversion from YCbCr to RGB.
#pragma once

namespace sluice::pipeline {

// Fixed-point numbers with 13 bits behind the point.
inline constexpr int kFactorBits = 13;
inline constexpr int k0_298 = 2446;
inline constexpr int k0_390 = 3196;
inline constexpr int k0_541 = 4433;
inline constexpr int k0_765 = 6270;
inline constexpr int k0_899 = 7373;
inline constexpr int k1_175 = 9633;
inline constexpr int k1_501 = 12299;
inline constexpr int k1_847 = 15137;
inline constexpr int k1_961 = 16069;
inline constexpr int k2_053 = 16819;
inline constexpr int k2_562 = 20995;
inline constexpr int k3_072 = 25172;

// The first pass keeps two bits more, the second drops them and the transform's scale of 8.
inline constexpr int kExtraBits = 2;
inline constexpr int kFirstPassShift = kFactorBits - kExtraBits;
inline constexpr int kSecondPassShift = kFactorBits + kExtraBits + 3;

// Fixed-point numbers with 16 bits behind the point, what is left of factors above 1 (or 2) when that is taken away.
inline constexpr int kRedFromRed = 26345;      // 1.402 - 1
inline constexpr int kGreenFromBlue = -22554;  // -0.34414
inline constexpr int kGreenFromRed = 18734;    // -0.71414 + 1
inline constexpr int kBlueFromBlue = -14942;   // 1.772 - 2
inline constexpr int kColourBits = 16;
inline constexpr int kColourZero = 128;

}  // namespace sluice::pipeline
