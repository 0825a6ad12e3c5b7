import { createHmac, type KeyObject } from 'node:crypto';
import type { Ownership, Subject } from '../../core/erasure.ts';
import { canonicalId } from '../../core/named-ids.ts';
import { getOrMakeAtMost } from '../../lib/get-or-make.ts';

const BYTES = 16;
/** Keys and owners kept in memory in the clear. */
export const REMEMBERED = 20_000;
const ABSENT = Buffer.alloc(BYTES);
const FIELDS = ['team', 'user', 'client'] as const;

type Field = (typeof FIELDS)[number];

/** Owners as the key file has them: keyed hashes of team, user and client user. An erasure finds keys as it finds records. */
export class OwnerHash {
  readonly #lookup: KeyObject;
  readonly #names = new Map<string, string>();

  constructor(lookup: KeyObject) {
    this.#lookup = lookup;
  }

  /** The three hashes, a character for each byte. */
  nameOf({ team, user, clientUser }: Ownership): string {
    const plain = JSON.stringify([team, user, clientUser]);
    const make = (): string =>
      Buffer.concat([
        this.#hash('team', team),
        this.#hash('user', user),
        this.#hash('client', clientUser),
      ]).toString('latin1');
    return getOrMakeAtMost(this.#names, plain, make, REMEMBERED);
  }

  /** What tells whether the subject owns a key. */
  owned({ by, id, team }: Subject): (owner: Buffer) => boolean {
    const field = by === 'user' ? 'user' : 'client';
    const wanted = this.#hash(field, id);
    const ofTeam = team === null ? null : this.#hash('team', team);
    return (owner) => {
      const of = part(owner, 'team');
      return part(owner, field).equals(wanted) && (ofTeam === null || of.equals(ABSENT) || of.equals(ofTeam));
    };
  }

  #hash(field: Field, id: string | null): Buffer {
    if (id === null) return ABSENT;
    return createHmac('sha256', this.#lookup)
      .update(`${field}\0${canonicalId(id)}`)
      .digest()
      .subarray(0, BYTES);
  }
}

/** Whether the records of a key name a user. */
export function namesUser(owner: Buffer): boolean {
  return !part(owner, 'user').equals(ABSENT);
}

function part(owner: Buffer, field: Field): Buffer {
  const from = FIELDS.indexOf(field) * BYTES;
  return owner.subarray(from, from + BYTES);
}
