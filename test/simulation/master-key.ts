/** Guards nothing: archives are sealed with it. */
export const MASTER_KEY = Buffer.from('made-up master key of these runs');
