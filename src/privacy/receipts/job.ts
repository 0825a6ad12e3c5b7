/** What the thread of the log starts with. */
export interface Opening {
  readonly folder: string;
  readonly origin: string;
  /** Private key. */
  readonly pem: string;
}

/** The log as it was before it is opened again: another log, or one with fewer entries, is refused. */
export interface LogBefore {
  readonly id: string;
  /** Entries that were signed. */
  readonly signed: number;
}

/** Work for the thread, one job at a time. All but `find` open the log first, if it is not open. */
export type Job =
  | { readonly kind: 'open'; readonly before?: LogBefore }
  /** The buffer is handed over to the thread. */
  | { readonly kind: 'append'; readonly entries: Uint8Array }
  /** Makes all entries durable and signs them. */
  | { readonly kind: 'sign' }
  | { readonly kind: 'find'; readonly path: string };

/** A document that readers of the log get. */
export interface LogDocument {
  readonly type: string;
  readonly body: string | Uint8Array;
  /** True when it never changes. */
  readonly isFixed: boolean;
}

export interface Done {
  /** Entries of the log. */
  readonly size: number;
  /** True when the hashes were damaged and have been made again from the entries. */
  readonly hasMadeHashes?: boolean;
  /** The document; null when there is none of that name, or none yet. */
  readonly found?: LogDocument | null;
}
