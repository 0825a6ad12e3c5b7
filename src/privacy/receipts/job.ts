/** What the thread of the log begins with. */
export interface Opening {
  readonly folder: string;
  readonly origin: string;
  /** Private key. */
  readonly pem: string;
}

/** A log that is opened once more. */
export interface LogBefore {
  readonly id: string;
  /** Entries that were signed. */
  readonly signed: number;
}

/** What it is to do. Jobs come one at a time. */
export interface Job {
  /** To append; a buffer that is all theirs. */
  readonly entries: Uint8Array | null;
  /** Make all of it durable, and sign it. */
  readonly sign: boolean;
  /** The log as it was before: when another one, or one with fewer entries, lies there, it is not opened. */
  readonly before?: LogBefore;
  /** A document that somebody wants to read. */
  readonly find?: string;
}

/** What is shown of the log. */
export interface LogDocument {
  readonly type: string;
  readonly body: string | Uint8Array;
  /** Whether it stays as it is for ever. */
  readonly isFixed: boolean;
}

export interface Done {
  readonly size: number;
  /** Whether the log was opened with hashes made again from its entries. */
  readonly hasMadeHashes?: boolean;
  /** Null when there is none of that name, or none yet. */
  readonly found?: LogDocument | null;
}
