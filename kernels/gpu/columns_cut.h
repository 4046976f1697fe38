/* Which outputs are adjacent columns, and how blocks share them: columns.cuh's. */
#pragma once

#include "brief_cut.h"

GPR_OPEN

struct ColumnsCut : BriefCut {
  /* The least bytes of the whole array: of rows below NARROW bytes, which are tiles of few lanes,
   * these, and else the row's columns_bytes. */
  enum { COLUMNS_BYTES = 2 << 20, NARROW = 4096 };
  bool is_for_columns() const {
    const Size wide = a.dim[a.kept - 1].size * row.bytes;
    const double all = (double)a.outputs * (double)a.count * row.bytes;
    return all >= (wide < NARROW ? COLUMNS_BYTES : row.columns_bytes);
  }
  /* Of a thread, whose V outputs take longer to come together than a tile's one, unless they go as
   * one: with one batch tiles took 24 µs on an H200 where these took 42. */
  enum { LEAST_BATCHES = 4 };
  /* Whether packets of rows reach out of them, or begin anywhere; -1: rows do not begin with whole
   * elements, or those of one run are so short that the packet of a row's end may reach out of the
   * next one, or tiles are quicker, as of several runs of what is neither bytes nor a sum. Of 21099
   * rows that end in a packet's middle, each 3434 floats of 6868, sums took 156 µs on an H200 where
   * only the rest of those was read, and 85 of 3436 floats. */
  int packets_of_rows() const {
    const Size stride = a.dim[a.kept].stride;
    Size places = places_of(a.kept - 1) % 16; /* of packets; 0: all begin with one */
    for (int d = 0; d < a.reduced; d++) places |= a.dim[a.kept + d].stride % 16;
    const bool ends = a.dim[a.kept - 1].size * row.bytes % 16 != 0; /* in the middle of a packet */
    if (!places)
      return ends && a.reduced == 1 && stride >= 32 ? GPR_PACKETS_REACH_OUT : GPR_PACKETS_FIT;
    const bool can_begin_anywhere = a.reduced == 1 ? stride >= 32 : row.bytes == 1 || row.joint;
    return can_begin_anywhere && places % row.bytes == 0 ? GPR_PACKETS_ANYWHERE : -1;
  }
  /* How many rows that follow each other are one of whole packets; 1 where they need not be. */
  Size rows_together(Size width, Size batches) const {
    const Size bytes = width * row.bytes, v = 16 / row.bytes;
    if (places_of(a.kept - 1) % 16 || a.reduced != 1 || a.dim[a.kept].stride != bytes ||
        bytes % 16 == 0)
      return 1;
    Size groups = 1;
    while (groups * width % v) groups++;
    const bool fit = groups * width / v <= AXES_THREADS && groups <= a.count;
    return fit && batches <= AXES_TICKETS ? groups : 1;
  }
  /* About how long what would take it instead takes, in steps of a block of columns as a Split's
   * time: brief, if it suits (its brief_waves(), or 0), else tiles. Fitted to 5,300 random shapes
   * that an H200 ran by each, and to 700 of 6 to 1000 bytes a row, with what each of the two ends
   * sooner or later than columns do, but for places, which are as they were measured singly. */
  double late(double brief) const {
    const Size step = (Size)AXES_THREADS * row.columns_loads * multiprocessors * row.columns_blocks;
    const double all = (double)a.outputs * row.bytes / 16 * (double)a.count / (double)step;
    const Size wide = a.dim[a.kept - 1].size * row.bytes;
    const double ends = row.joint ? 0 : row.is_ordered ? 0.3 : -1.5;
    if (brief > 0) return row.brief_pace * brief * all + ends;
    const double reading = row.tile_pace * all;
    if (!row.is_ordered) return reading + (row.joint ? 2.5 : 3);
    if (!a.packets && wide < NARROW) return 1.3 * reading + 3.5 * whole_steps();
    return reading + (4.5 - (a.packets ? 2 : 0)) * whole_steps();
  }
  /* Whether there are columns, or enough of them. */
  bool has_columns() const {
    return columns_program() && a.kept && a.reduced && a.dim[a.kept - 1].stride == row.bytes &&
           (is_for_columns() || wanted);
  }
  gpr_program *columns_program() const { return a.skip ? row.columns_skipping : row.columns; }
  /* Their time over that of packets that fit, as it is weighed against late(): 1.0 to 1.03 on an
   * H200 for elements of four bytes and more, 1.02 to 1.25 for less. */
  static constexpr double ANYWHERE = 1.1;
  /* brief: as brief_waves() has it. */
  bool columns(double brief) {
    const Size width = a.dim[a.kept - 1].size, bytes = width * row.bytes;
    const Size batches = a.outputs / width;
    const int v = 16 / row.bytes;
    if (a.count < 4 * v && !wanted) return false; /* a thread has v outputs to finish */
    a.groups = rows_together(width, batches);
    a.packets = a.groups > 1 ? (int)GPR_PACKETS_FIT : packets_of_rows();
    if (a.packets < 0 || (bytes < 16 && a.groups == 1)) return false;
    a.length = a.groups * width;
    const Size packets = up(a.length, v);
    Split best = {1, 1e300};
    const auto consider = [&](Size wide) {
      const Split split = columns_split(wide, packets, batches, a.groups);
      if (split.time < best.time) best = split, a.team = (int)wide;
    };
    if (a.groups > 1 || packets <= AXES_THREADS / 2) consider(packets);
    if (a.groups == 1 && packets > 32)
      for (Size wide = 32; wide <= AXES_THREADS && wide < 2 * packets; wide *= 2) consider(wide);
    const double pace = a.packets == GPR_PACKETS_ANYWHERE ? ANYWHERE : 1;
    if (!wanted && pace * best.time > late(brief)) return false;
    a.rows = AXES_THREADS / a.team;
    a.tiles = up(packets, a.team);
    const Size turn = a.groups * a.rows * row.columns_loads;
    if (best.blocks == 1 && a.count < LEAST_BATCHES * turn && row.columns_together == 1 && !wanted)
      return false;
    a.split = best.blocks;
    a.full = a.count / a.groups;
    const Size tickets = a.tiles * batches, blocks = tickets * a.split;
    if (a.split > 1 && tickets > AXES_TICKETS) return false;
    const Size cells = a.groups > 1 ? up(width, v) * v : a.team * v; /* that a block leaves */
    /* Where a thread of the last block would have more than 1 KiB to read. */
    if (!row.joint && a.split * cells * (Size)row.state > AXES_THREADS * 1024 &&
        a.split > 2 * CROWD && tickets * (1 + up(a.split, CROWD)) <= AXES_TICKETS)
      a.crowd = CROWD;
    if (a.split > 1 && a.reduced == 1)
      set_queue(tickets * (1 + (a.crowd ? up(a.split, CROWD) : 0)),
                tickets * (AXES_THREADS / GPR_WARP));
    const Size rows = (Size)a.rows * row.columns_loads * a.split;
    set_drawn(a.team * a.rows == AXES_THREADS, a.full / rows, rows);
    set_extent();
    const bool shared = a.split > 1 || (row.joint && a.groups > 1);
    if (!row.joint || !shared)
      return take(columns_program(), blocks, shared ? (size_t)(blocks * cells) : 0);
    const Size outputs = a.groups > 1 ? width : cells;
    take(columns_program(), blocks, 0);
    out.scratch =
        AXES_POOL + (size_t)(tickets * outputs) * (row.joint + (a.skip != 0)) * sizeof(uint64_t);
    out.tickets = out.scratch;
    return true;
  }
  /* Counters behind the tickets, if there is room, as far apart as there is: 8 of them 2 KiB apart
   * in place of 256 bytes took 2 µs off the 247 of 1 GiB on an H200. */
  void set_queue(Size used, Size counters) {
    const Size room = used < AXES_TICKETS ? (AXES_TICKETS - used) / counters : 0;
    if (room) a.queue = (int)used;
    a.queue_apart = (int)room;
  }
  /* Some multiprocessors are nearer to the memory: of 256 MiB in equal parts blocks had read theirs
   * after 56 to 66 µs on an H200, after 62 to 63 where a sixth of the turns was drawn. Each warp of
   * the blocks that share columns draws for itself. */
  enum { DRAWN_PART = 6, DRAWN_LEAST = 3 };
  void set_drawn(bool draws, Size turns, Size of_turn) {
    draws = draws && a.queue && turns >= DRAWN_LEAST;
    const Size drawn = turns < DRAWN_PART ? 1 : turns / DRAWN_PART;
    a.drawn = draws ? (turns - drawn) * of_turn : INT64_MAX;
  }
  /* Halves take longer than their reading. */
  double joint_ends() const { return row.bytes < 4 ? 7 : 1.5; }
  /* Steps of 8 loads, or 32 KiB, in this fold's own. */
  double whole_steps() const { return 8.0 / row.columns_loads; }
  /* Of a block's threads so many have enough under way for the memory, and a step of fewer loads is
   * a shorter one: of 95 batches of 22534 rows of 88 doubles sums took 377 µs on an H200 by 176 of
   * 256 threads, and 501 as brief ones. */
  static constexpr double FILLED = 0.75;
  static constexpr double NEIGHBOURS_PART = 1.5; /* steps, of blocks that share neighbours */
  /* Measured on an H200: a block's ends take one and a half of its steps, each of 32 KiB, or half
   * of one and one for 40 bytes of a thread's states and results, or 80 where neighbours go as one,
   * and a quarter for each time that its threads come together by halves; to read 16 states, or
   * 16 times such neighbours, one. Of several runs the threads down wait for each other's. Places
   * of bytes take 7 times as long as their reading, of halves 4.5, of floats 1.4. */
  Split columns_split(Size wide, Size packets, Size batches, Size groups) const {
    const Size high = AXES_THREADS / wide, tiles = up(packets, wide) * batches;
    const Size run = a.reduced > 1 ? a.dim[inner()].size : a.count;
    /* What is left of each run goes by fewer loads: in runs of one to two turns such columns took
     * 0.8 to 2.3 times as long as tiles, mostly 1.2; sums in runs of 32 and more 0.6 to 1. */
    const bool has_rests = a.reduced > 1 && a.packets == GPR_PACKETS_ANYWHERE;
    const Size rounds = a.count / run * (up(run / groups, high * row.columns_loads) + has_rests);
    const double place = row.bytes == 2 ? 4.5 : 1 + 6.0 / (row.bytes * row.bytes);
    const double pace = row.is_ordered ? place : 1;
    const double filled = (double)(packets * high) / (double)(up(packets, wide) * AXES_THREADS);
    const Size steps = (Size)(pace * (double)rounds * (filled > FILLED ? filled : FILLED));
    const double bytes = (double)(16 / row.bytes * ((Size)row.moved + 8)); /* a thread's */
    const int together = row.columns_together;
    double ends =
        row.joint ? joint_ends() : (0.5 + bytes / (together > 1 ? 80 : 40)) * whole_steps();
    for (Size h = high; h > 1; h /= 2) ends += 0.25;
    const Size slots = (Size)multiprocessors * row.columns_blocks;
    const Size cells = wide * (16 / row.bytes) / groups;
    const double states = (double)cells / AXES_THREADS; /* a thread's */
    const double adding = row.joint_steps * (double)cells;
    const double alone_pace = row.joint ? 1 : pace_of(tiles, slots);
    Split alone = {1, (double)up(tiles, slots) * ((double)steps * alone_pace + ends)};
    if (groups > 1) alone.time += (double)up(tiles, slots) * adding;
    if (tiles > AXES_TICKETS) return alone;
    const Split shared = row.joint
                             ? best_split(tiles, slots, steps, 4, ends + adding, 0, states / 2)
                             : best_split(tiles, slots, steps, 4, ends, states / (16 * together),
                                          together > 1 ? NEIGHBOURS_PART : 0, true);
    return alone.time <= shared.time ? alone : shared;
  }
};

GPR_CLOSE
