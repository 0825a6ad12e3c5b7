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
}

export interface Done {
  readonly size: number;
  /** The signed note, where one was asked for. */
  readonly checkpoint: string | null;
}
