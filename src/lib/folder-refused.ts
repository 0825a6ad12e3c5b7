/** A folder that cannot be written: another command writes it now, or its content is that of another run. The message says which. */
export class FolderRefused extends Error {
  readonly why: 'in_use' | 'not_ours';

  constructor(why: 'in_use' | 'not_ours', message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'FolderRefused';
    this.why = why;
  }
}
