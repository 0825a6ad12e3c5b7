/** What may be opened: a record as Apache's consumer reads it. */
interface Sealed {
  readonly value: Buffer | null;
  readonly headers: Readonly<Record<string, string>>;
}
export function keysIn(folder: string, master: string): Map<string, Buffer>;
export function opened(records: readonly Sealed[], keys: ReadonlyMap<string, Buffer>): number;
