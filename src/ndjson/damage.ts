/** Why a text ends before its time. */
export interface Damage {
  readonly code: 'cut' | 'broken';
  readonly reason: string;
}

/** The text ends before its time, for its bytes make no sense any more. What came before was good. */
export class DamagedText extends Error implements Damage {
  readonly code: Damage['code'];
  readonly reason: string;

  constructor(code: Damage['code'], reason: string, options?: ErrorOptions) {
    super(reason, options);
    this.name = 'DamagedText';
    this.code = code;
    this.reason = reason;
  }
}
