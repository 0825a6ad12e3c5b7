/** The encodings of a consumer group, version 0. https://kafka.apache.org/protocol, ConsumerProtocolSubscription and -Assignment */

/** What a member says of itself when it joins: which topic it reads, and what it had of it. */
export function encodeSubscription(topic: string, owned: readonly number[]): Buffer {
  return Buffer.concat([int16(0), int32(1), text(topic), bytes(Buffer.from(JSON.stringify(owned)))]);
}

/** What a member had; nothing for one of another program. */
function ownedOf(subscription: Buffer): readonly number[] {
  try {
    const topics = subscription.readInt32BE(2);
    let at = 6;
    for (let n = 0; n < topics; n += 1) at += 2 + subscription.readInt16BE(at);
    const length = subscription.readInt32BE(at);
    const owned: unknown = JSON.parse(subscription.subarray(at + 4, at + 4 + length).toString());
    return Array.isArray(owned) ? owned.filter((each) => Number.isSafeInteger(each)) : [];
  } catch {
    return [];
  }
}

export function encodeAssignment(topic: string, partitions: readonly number[]): Buffer {
  const numbers = partitions.map((each) => int32(each));
  return Buffer.concat([
    int16(0),
    int32(1),
    text(topic),
    int32(partitions.length),
    ...numbers,
    bytes(Buffer.alloc(0)),
  ]);
}

export function decodeAssignment(assignment: Buffer): readonly number[] {
  if (assignment.length === 0) return [];
  const partitions: number[] = [];
  let at = 6;
  for (let topics = assignment.readInt32BE(2); topics > 0; topics -= 1) {
    at += 2 + assignment.readInt16BE(at);
    const count = assignment.readInt32BE(at);
    at += 4;
    for (let n = 0; n < count; n += 1, at += 4) partitions.push(assignment.readInt32BE(at));
  }
  return partitions;
}

/** Shares out partitions, as evenly as can be, and leaves each with whom it was: its window of ids is there. */
export function shareOut(
  topic: string,
  partitions: number,
  members: readonly { readonly id: string; readonly metadata: Buffer }[],
): ReadonlyMap<string, Buffer> {
  const shares = new Map(members.map(({ id }) => [id, [] as number[]]));
  const ids = [...shares.keys()].toSorted();
  const free = new Set(Array.from({ length: partitions }, (_, index) => index));
  const most = Math.ceil(partitions / ids.length);
  // So many may have one more than the others.
  let full = partitions - (most - 1) * ids.length;
  for (const { id, metadata } of members.toSorted((a, b) => (a.id < b.id ? -1 : 1))) {
    const share = shares.get(id) ?? [];
    for (const partition of ownedOf(metadata)) {
      const limit = full > 0 ? most : most - 1;
      if (share.length >= limit || !free.delete(partition)) continue;
      share.push(partition);
    }
    if (share.length === most) full -= 1;
  }
  for (const partition of free) {
    const [least] = ids.toSorted((a, b) => (shares.get(a)?.length ?? 0) - (shares.get(b)?.length ?? 0));
    shares.get(least ?? '')?.push(partition);
  }
  return new Map(Array.from(shares, ([id, share]) => [id, encodeAssignment(topic, share)]));
}

function int16(value: number): Buffer {
  const buffer = Buffer.alloc(2);
  buffer.writeInt16BE(value);
  return buffer;
}

function int32(value: number): Buffer {
  const buffer = Buffer.alloc(4);
  buffer.writeInt32BE(value);
  return buffer;
}

function text(value: string): Buffer {
  return Buffer.concat([int16(Buffer.byteLength(value)), Buffer.from(value)]);
}

function bytes(value: Buffer): Buffer {
  return Buffer.concat([int32(value.length), value]);
}
