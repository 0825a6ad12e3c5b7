/** What the thread of the log begins with. */
export interface Opening {
  readonly folder: string;
  readonly origin: string;
  /** Private key. */
  readonly pem: string;
}

/** What it is to do. Jobs come one at a time. */
export interface Job {
  /** To append; a buffer that is all theirs. */
  readonly entries: Uint8Array | null;
  /** Make all of it durable, and sign it. */
  readonly sign: boolean;
  /** Entries that were signed before: when it is opened and has fewer, it is not the log that it was. */
  readonly least?: number;
  /** Two sizes of the log: to prove that the one goes on from the other. */
  readonly between?: readonly [old: number, size: number];
  /** A checkpoint with the signatures of witnesses. */
  readonly cosigned?: string;
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
  /** The signed note, where one was asked for. */
  readonly checkpoint: string | null;
  /** Hashes, base64; where it was asked for. */
  readonly consistency?: readonly string[];
  /** Null when there is none of that name, or none yet. */
  readonly found?: LogDocument | null;
}
