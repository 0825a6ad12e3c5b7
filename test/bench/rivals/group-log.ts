import { fdatasync, openSync, write } from 'node:fs';

type Done = (error: Error | null) => void;

/** An append-only file. What is appended while one write and its fdatasync run goes into the next, together. */
export class GroupLog {
  readonly #file: number;
  #parts: Buffer[] = [];
  #waiting: Done[] = [];
  #busy = false;

  constructor(path: string) {
    this.#file = openSync(path, 'a');
  }

  /** A record is `ID LENGTH\n`, so many bytes, and a line break. @param done called when it is on disk */
  append(head: Buffer, body: Buffer, done: Done): void {
    this.#parts.push(head, body, END);
    this.#waiting.push(done);
    if (this.#busy) return;
    this.#busy = true;
    // What this turn of the event loop still brings goes along.
    setImmediate(() => this.#write());
  }

  #write(): void {
    const parts = this.#parts;
    const waiting = this.#waiting;
    this.#parts = [];
    this.#waiting = [];
    const settle = (error: Error | null): void => {
      for (const done of waiting) done(error);
      if (this.#waiting.length > 0) this.#write();
      else this.#busy = false;
    };
    const all = Buffer.concat(parts);
    write(this.#file, all, (error, written) => {
      if (error !== null) settle(error);
      else if (written !== all.length) settle(new Error('the disk is full'));
      else fdatasync(this.#file, settle);
    });
  }
}

const END = Buffer.from('\n');
