// The sound of an alarm: two short tones, rising when something came and falling when it went.

const TONES_HZ = [660, 880];
const TONE_S = 0.14;
const VOLUME = 0.12;
let context = null;

/** Play the sound. A browser plays nothing before the user's first click or key on the page. */
export function playAlarm(rising) {
  context ??= new AudioContext();
  const begins = context.currentTime + 0.02;
  (rising ? TONES_HZ : [...TONES_HZ].reverse()).forEach((hz, i) => {
    const [tone, volume] = [context.createOscillator(), context.createGain()];
    const at = begins + i * TONE_S;
    tone.frequency.value = hz;
    volume.gain.setValueAtTime(0, at);
    volume.gain.linearRampToValueAtTime(VOLUME, at + 0.02);
    volume.gain.linearRampToValueAtTime(0, at + TONE_S);
    tone.connect(volume).connect(context.destination);
    tone.start(at);
    tone.stop(at + TONE_S);
  });
}
