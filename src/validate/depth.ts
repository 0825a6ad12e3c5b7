const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/**
 * Whether JSON text is nested deeper than `limit`. Looks at bytes only, before anything is parsed: the parser itself
 * takes 200,000 levels without complaint, and what walks its result later does not. Follows strings exactly as the
 * parser does, so on text that is not JSON it is right up to the place where the parser gives up.
 */
export function isDeeperThan(json: Buffer, limit: number): boolean {
  // Each level takes a byte to open, and a shorter body cannot get there.
  if (json.length <= limit) return false;
  const end = json.length;
  let depth = 0;
  for (let at = 0; at < end; at += 1) {
    const byte = json[at] ?? 0;
    if (byte === QUOTE) {
      at += 1;
      while (at < end && json[at] !== QUOTE) at += json[at] === BACKSLASH ? 2 : 1;
    } else if ((byte | 0x20) === 0x7b) {
      // `{` and `[` differ in this one bit only, and so do `}` and `]`.
      depth += 1;
      if (depth > limit) return true;
    } else if ((byte | 0x20) === 0x7d) {
      depth -= 1;
    }
  }
  return false;
}
