import { createSecretKey, randomBytes } from 'node:crypto';
import type { Ownership, Subject } from '../../core/erasure.ts';
import { MillraceError } from '../../core/errors.ts';
import type { KeyLedger, LedgerEntry } from '../../core/proof.ts';
import type { OpenedRecord, RecordOpener, SealedRecord } from '../../core/sealed-record.ts';
import { ByteWriter } from '../../lib/byte-writer.ts';
import { readPlain } from '../../lib/durable.ts';
import { getOrMakeAtMost } from '../../lib/get-or-make.ts';
import {
  activeSlot,
  destroyedSlot,
  isTombstone,
  newHeader,
  openHeader,
  ownerOf,
  readSlot,
  SLOT,
  unwrapKey,
  type ActiveSlot,
  type DestroyedSlot,
  type FileKeys,
} from './key-file.ts';
import { namesUser, OwnerHash, REMEMBERED } from './owner.ts';
import { openLine } from './record.ts';
import { Tombstones, type KeyProblem } from './tombstones.ts';

const KEY = 32;
const ID = 16;

/** A key file in memory, its keys wrapped as on disk; opens sealed records. Keys used last are kept unwrapped. */
export class KeyRing implements RecordOpener {
  readonly #keys: FileKeys;
  readonly #hash: OwnerHash;
  /** The file's bytes: an object for each key would take ten times the memory. */
  readonly #file = new ByteWriter();
  /** Offsets of slots, by id of the key. */
  readonly #active = new Map<string, number>();
  /** Ids of keys, by the hashes of their owners. */
  readonly #byOwner = new Map<string, string>();
  /** Offsets of keys that are forgotten in memory, and still on disk. */
  readonly #forgotten = new Set<number>();
  readonly #tombstones = new Tombstones();
  /** Offsets of slots whose key has a tombstone elsewhere in the file. */
  readonly #returned: number[] = [];
  /** Unwrapped keys, by id. */
  readonly #open = new Map<string, Buffer>();
  #damaged = 0;
  /** Id of the last key in the file, destroyed or not. */
  newest: string | null = null;

  private constructor(keys: FileKeys, header: Buffer) {
    this.#keys = keys;
    this.#hash = new OwnerHash(keys.lookup);
    this.#file.append(header);
  }

  /** @throws MillraceError master_key_wrong; an Error when it is not a key file; the system's error */
  static async read(file: string, master: Buffer): Promise<KeyRing> {
    const bytes = Buffer.concat(await Array.fromAsync(readPlain(file)));
    const header = bytes.subarray(0, SLOT);
    const keys = openHeader(header, master);
    if (keys === null)
      throw new MillraceError('master_key_wrong', `${file} was created with another master key`);
    const ring = new KeyRing(keys, header);
    const whole = bytes.length - (bytes.length % SLOT);
    for (let at = SLOT; at < whole; at += SLOT) ring.append(bytes.subarray(at, at + SLOT));
    return ring;
  }

  /** Offset after the last slot. */
  get end(): number {
    return this.#file.length;
  }

  get counts() {
    return { active: this.#active.size, destroyed: this.destroyed, damaged: this.#damaged };
  }

  get destroyed(): number {
    return this.#tombstones.size;
  }

  /** Id of the store. */
  get store(): string {
    return this.#keys.store;
  }

  /** Whether the file has this key, destroyed or not. */
  has(id: string): boolean {
    return this.#active.has(id) || this.#tombstones.has(id);
  }

  get tombstones(): Pick<Tombstones, 'last' | 'entries'> {
    return this.#tombstones;
  }

  /** What shows that the file is not as it was left. @param ledger null without one: what the file says of itself */
  problems(ledger: KeyLedger | null): readonly KeyProblem[] {
    const problems: KeyProblem[] = [];
    let noted: Parameters<Tombstones['problems']>[0] = null;
    try {
      if (ledger !== null) noted = { path: ledger.path, entries: ledger.entries(this.store) };
    } catch (error) {
      if (!(error instanceof MillraceError) || error.code !== 'ledger_forged') throw error;
      problems.push({ code: 'ledger_forged', detail: error.detail });
    }
    return [...problems, ...this.#tombstones.problems(noted, this.#damaged, (id) => this.#active.has(id))];
  }

  open(sealed: SealedRecord): OpenedRecord {
    const { key: id } = sealed;
    if (this.#tombstones.has(id)) return { ok: false, why: 'erased' };
    const key = this.#keyOf(id);
    if (key === null) return { ok: false, why: 'unknown_key' };
    const line = openLine(createSecretKey(key), sealed);
    return line === null ? { ok: false, why: 'damaged' } : { ok: true, line };
  }

  /** Null when the owner has none. */
  keyOf(owner: Ownership): { readonly id: string; readonly key: Buffer } | null {
    const id = this.#byOwner.get(this.#hash.nameOf(owner)) ?? '';
    const key = this.#keyOf(id);
    return key === null ? null : { id, key };
  }

  ownedBy(subject: Subject): { readonly id: Buffer; readonly at: number }[] {
    const owned = this.#hash.owned(subject);
    const found: { id: Buffer; at: number }[] = [];
    for (const at of [...this.#active.values(), ...this.#forgotten]) {
      const slot = owned(ownerOf(this.#bytesAt(at))) ? this.#slotAt(at) : null;
      if (slot !== null) found.push({ id: Buffer.from(slot.id), at });
    }
    return found;
  }

  /** Slots with new keys for the owners that have none, one each; not part of the ring until they are appended. */
  slotsFor(owners: readonly Ownership[]): Buffer[] {
    const slots = new Map<string, Buffer>();
    for (const owner of owners) {
      const name = this.#hash.nameOf(owner);
      if (this.#byOwner.has(name) || slots.has(name)) continue;
      const hash = Buffer.from(name, 'latin1');
      slots.set(name, activeSlot(this.#keys.wrapping, randomBytes(ID), hash, randomBytes(KEY)));
    }
    return [...slots.values()];
  }

  append(bytes: Buffer): void {
    const at = this.#file.length;
    this.#file.append(bytes);
    const slot = readSlot(bytes);
    if ('id' in slot) this.newest = slot.id.toString('hex');
    if (slot.state === 'active') this.#appendActive(slot, at);
    else if (slot.state === 'destroyed') this.#appendDestroyed(slot, bytes);
    else if (slot.state === 'damaged') this.#damaged += 1;
  }

  #appendActive(slot: ActiveSlot, at: number): void {
    const id = slot.id.toString('hex');
    if (this.#tombstones.has(id)) {
      this.#returned.push(at);
      this.#tombstones.returned(id);
      return;
    }
    this.#active.set(id, at);
    this.#byOwner.set(slot.owner.toString('latin1'), id);
  }

  #appendDestroyed({ id: bytes, epoch }: DestroyedSlot, slot: Buffer): void {
    const id = bytes.toString('hex');
    // Without the master key nothing can declare a key destroyed.
    if (!isTombstone(this.#keys, slot)) return this.#tombstones.forged();
    const at = this.#active.get(id);
    if (at !== undefined) {
      this.forget(bytes);
      this.#returned.push(at);
      this.#tombstones.returned(id);
    }
    this.#tombstones.written(id, epoch);
  }

  /**
   * From now on the key opens and seals nothing, and its owner gets another.
   * @returns the unwrapped key, to be overwritten once it is not in use; null when it is not in memory
   */
  forget(id: Buffer): Buffer | null {
    const name = id.toString('hex');
    const at = this.#active.get(name);
    const slot = this.#activeSlotOf(name);
    if (at === undefined || slot === null) return null;
    this.#active.delete(name);
    this.#forgotten.add(at);
    this.#byOwner.delete(slot.owner.toString('latin1'));
    const open = this.#open.get(name) ?? null;
    this.#open.delete(name);
    this.#tombstones.forget(name);
    return open;
  }

  /** True when there is a key for records that name no user. */
  get sealsUnnamed(): boolean {
    return [...this.#byOwner.keys()].some((name) => !namesUser(Buffer.from(name, 'latin1')));
  }

  /** The slot that replaces a forgotten key. */
  tombstoneFor(id: Buffer): { readonly slot: Buffer; readonly epoch: number } {
    const epoch = this.#tombstones.last + 1;
    return { slot: destroyedSlot(this.#keys, id, epoch), epoch };
  }

  /** The slot at `at` has been overwritten with this one. */
  gone(at: number, id: Buffer, { slot, epoch }: { readonly slot: Buffer; readonly epoch: number }): void {
    this.#forgotten.delete(at);
    slot.copy(this.#bytesAt(at));
    this.#tombstones.written(id.toString('hex'), epoch);
  }

  /** A file with the same keys under another master key; `count` is their number. */
  rewrapped(master: Buffer): { file: Buffer; count: number } {
    const { header, keys } = newHeader(master, this.#keys.lookup);
    const slots = Array.from(this.#active, ([id, at]) => {
      const slot = this.#slotAt(at);
      const key = slot === null ? null : unwrapKey(this.#keys.wrapping, slot);
      if (slot === null || key === null) throw new Error(`the key ${id} is damaged`);
      return activeSlot(keys.wrapping, slot.id, slot.owner, key);
    });
    const gone = Array.from(this.#tombstones.entries(), ([id, epoch]) =>
      destroyedSlot(keys, Buffer.from(id, 'hex'), epoch),
    );
    // As many damaged slots: each may have been a tombstone whose epoch is missing now.
    const damaged = Buffer.alloc(this.#damaged * SLOT, 0xff);
    return { file: Buffer.concat([header, ...slots, ...gone, damaged]), count: slots.length };
  }

  /** A file with the same slots, but tombstones for the keys that are destroyed by the ledger. */
  without(noted: readonly LedgerEntry[]): Buffer {
    const epochs = new Map<string, number>();
    for (const { key, epoch } of noted) if (key !== null) epochs.set(key, epoch);
    for (const [id, epoch] of this.#tombstones.entries()) epochs.set(id, epoch);
    const destroyed = (id: string, epoch: number): Buffer =>
      destroyedSlot(this.#keys, Buffer.from(id, 'hex'), epoch);
    const slots: Buffer[] = [this.#bytesAt(0)];
    const written = new Set<string>();
    for (let at = SLOT; at < this.end; at += SLOT) {
      const slot = readSlot(this.#bytesAt(at));
      const id = 'id' in slot ? slot.id.toString('hex') : '';
      if (written.has(id) || this.#returned.includes(at)) continue;
      // A forged tombstone stays, and is found again.
      const isForged = slot.state === 'destroyed' && !this.#tombstones.has(id);
      const epoch = isForged ? undefined : epochs.get(id);
      if (epoch !== undefined) written.add(id);
      slots.push(epoch === undefined ? this.#bytesAt(at) : destroyed(id, epoch));
    }
    for (const [id, epoch] of epochs) if (!written.has(id)) slots.push(destroyed(id, epoch));
    return Buffer.concat(slots);
  }

  /** The unwrapped key of an id; null when it is unknown or damaged. */
  #keyOf(id: string): Buffer | null {
    const known = this.#open.get(id);
    if (known !== undefined) return known;
    const slot = this.#activeSlotOf(id);
    const bytes = slot === null ? null : unwrapKey(this.#keys.wrapping, slot);
    return bytes === null ? null : getOrMakeAtMost(this.#open, id, () => bytes, REMEMBERED);
  }

  #activeSlotOf(id: string): ActiveSlot | null {
    const at = this.#active.get(id);
    return at === undefined ? null : this.#slotAt(at);
  }

  #slotAt(at: number): ActiveSlot | null {
    const slot = readSlot(this.#bytesAt(at));
    return slot.state === 'active' ? slot : null;
  }

  #bytesAt(at: number): Buffer {
    return this.#file.buffer.subarray(at, at + SLOT);
  }
}
