/* Leaves of lines that are not packed, on their way while those before them are folded. */
#pragma once

#include "leaves.cuh"

GPR_OPEN

/* N rows of a warp's outputs, whose elements of LEAF bytes lie side by side: aligned pieces of 16
 * bytes, which all lanes copy, from where the first element begins or before it. Where the next N
 * rows begin, such pieces begin as far from their elements as here. */
template <int LEAF, int N> struct RowPieces {
  enum { PIECES = GPR_WARP * LEAF / 16, PITCH = (PIECES + 1) * 16 };
  enum { COPIES = N * PIECES / GPR_WARP + 1 }; /* of a lane; the last is what a row has beyond */
  static_assert(N * PIECES % GPR_WARP == 0 && N * LEAF % 16 == 0, "whole copies");
  int64_t from[COPIES], end; /* end: behind the last byte of all rows */
  int there[COPIES], own[N];
  static GPR_DEVICE int row(int k) {
    return k < COPIES - 1 ? (k * GPR_WARP + lane_of()) / PIECES : lane_of();
  }
  static GPR_DEVICE int piece(int k) {
    return k < COPIES - 1 ? (k * GPR_WARP + lane_of()) % PIECES : (int)PIECES;
  }
  /* From the rows at `first` on, of which `bytes` are there. */
  GPR_DEVICE void begin(int64_t first, int64_t step, int bytes, int64_t rows) {
    end = first + (step > 0 ? (rows - 1) * step : 0) + bytes;
    GPR_EACH(k, COPIES) {
      const int64_t at = first + row(k) * step;
      const int begin = piece(k) * 16 - (int)(at & 15), left = bytes - begin;
      from[k] = at + begin;
      there[k] = left < 0 || row(k) >= N ? 0 : left < 16 ? left : 16;
    }
    GPR_EACH(j, N) own[j] = j * PITCH + (int)((first + j * step) & 15) + lane_of() * LEAF;
  }
  /* The packet that the last row ends in may not be there whole. */
  GPR_DEVICE void bring(char *to, int64_t step) {
    GPR_EACH(k, COPIES) {
      char *const place = to + row(k) * PITCH + piece(k) * 16;
      const char *const packet = (const char *)from[k];
      if (there[k] && from[k] + 16 <= end)
        copy_packet(place, packet);
      else
        for (int i = 0; i < there[k]; i++) place[i] = __ldg(packet + i);
      from[k] += N * step;
    }
  }
  template <class T> GPR_DEVICE void get(T (&to)[N], const char *places) const {
    GPR_EACH(j, N) to[j] = *(const T *)(places + own[j]);
  }
};

/* Some runs of a line that is not packed. Their leaves come to the warp's room in shared memory, a
 * whole run ahead: of registers a compiler waits for all that a loop loads together. A lane brings
 * its own, or, where `row` bytes of neighbouring outputs lie side by side, all bring rows. */
template <class OP, class X> struct Ahead {
  enum { PARTS = 4, MANY = OP::RUN / PARTS };
  typedef RowPieces<OP::HAS_ROWS ? (int)OP::LEAF : 16, OP::HAS_ROWS ? (int)MANY : 1> Rows;
  enum { OF_ROWS = OP::HAS_ROWS ? MANY * Rows::PITCH : 0 };
  enum { OF_OWN = OP::IS_AHEAD ? MANY * GPR_WARP * OP::LEAF : 0 };
  enum { OF_PART = OF_ROWS > OF_OWN ? OF_ROWS : OF_OWN, BYTES = PARTS * OF_PART };
  const X &x;
  char *const places;
  const int row;
  int64_t at[OP::ARRAYS], parts; /* of the leaves that come next, and how much is left of them */
  Rows rows;

  GPR_DEVICE void bring(int part) {
    if (parts > 0) {
      if constexpr (OP::HAS_ROWS)
        if (row) rows.bring(places + part * OF_PART, x.step[0]);
      if constexpr (OP::IS_AHEAD)
        if (!row) OP::template bring<MANY>(places + part * OF_PART, x, at);
      GPR_EACH(k, OP::ARRAYS) at[k] += MANY * x.step[k];
    }
    parts--;
    copies_begun();
  }
  GPR_DEVICE void begin(const int64_t (&from)[OP::ARRAYS], int64_t runs) {
    GPR_EACH(k, OP::ARRAYS) at[k] = from[k];
    if constexpr (OP::HAS_ROWS)
      if (row) rows.begin(broadcast(at[0], 0), x.step[0], row, runs * OP::RUN);
    parts = runs * PARTS;
    GPR_EACH(part, PARTS) bring(part);
  }
  /* The leaves of a part, whose room the one that comes a run later has then. */
  GPR_DEVICE void get(typename OP::template Leaves<MANY> &leaves, int part) {
    own_copies_came<PARTS - 1>();
    if constexpr (OP::HAS_ROWS)
      if (row) {
        __syncwarp();
        rows.get(leaves.bits, places + part * OF_PART);
        __syncwarp();
      }
    if constexpr (OP::IS_AHEAD)
      if (!row) leaves.get_own(places + part * OF_PART);
    bring(part);
  }
};

GPR_CLOSE
