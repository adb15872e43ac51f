"use strict";
// Byte-level byte-pair encoding, token for token that of pathsum.text.tokenizer.
class Tokenizer {
  // how byte-level BPE cuts text into words: \s is JavaScript's, which differs from White_Space
  static WORDS = new RegExp(
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\p{White_Space}\\p{L}\\p{N}]+|" +
      "\\p{White_Space}+(?!\\P{White_Space})|\\p{White_Space}+",
    "gu",
  );

  constructor({ words, bytes, merges }) {
    this.words = words; // the printed form of each token
    this.bytes = bytes; // the token of each byte
    this.merged = merges.map(([, , merged]) => merged);
    this.ranks = new Map(merges.map(([a, b], rank) => [`${a} ${b}`, rank]));
  }

  // The tokens of a text, without BOS.
  encode(text) {
    const words = text.match(Tokenizer.WORDS) ?? [];
    return words.flatMap((word) => this.merge(Array.from(new TextEncoder().encode(word), (b) => this.bytes[b])));
  }

  // Merges the pair that was learnt first, again and again.
  merge(tokens) {
    for (;;) {
      let [first, at] = [Infinity, -1];
      for (let i = 0; i + 1 < tokens.length; i++) {
        const rank = this.ranks.get(`${tokens[i]} ${tokens[i + 1]}`) ?? Infinity;
        if (rank < first) [first, at] = [rank, i];
      }
      if (at < 0) return tokens;
      tokens.splice(at, 2, this.merged[first]);
    }
  }

  // BOS and `block` random tokens twice, equal for equal seeds. Only merged tokens: the training text has all of them.
  randomTwice(seed, block) {
    const known = [...new Set(this.merged)];
    const once = Array.from({ length: block }, () => {
      seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0; // Knuth's linear congruential generator
      return known[Math.floor((seed / 2 ** 32) * known.length)];
    });
    return [0, ...once, ...once];
  }
}
